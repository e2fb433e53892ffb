"""A Cinder driver for volumes without disks: every storage operation succeeds and does nothing."""

from cinder import interface
from cinder.volume import driver


@interface.volumedriver
class VolumesWithoutDisks(driver.VolumeDriver):
    VERSION = "1.0"
    CI_WIKI_NAME = "none"

    def check_for_setup_error(self):
        pass

    def _update_volume_stats(self):
        pool = {"pool_name": "pretended", "total_capacity_gb": 10000, "free_capacity_gb": 10000, "reserved_percentage": 0}
        self._stats = {
            "volume_backend_name": "pretended",
            "vendor_name": "Bedplate",
            "driver_version": self.VERSION,
            "storage_protocol": "iSCSI",
            "pools": [pool],
        }

    def create_volume(self, volume):
        return {}

    def create_volume_from_snapshot(self, volume, snapshot):
        return {}

    def create_cloned_volume(self, volume, src_vref):
        return {}

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        return {}, True

    def extend_volume(self, volume, new_size):
        pass

    def delete_volume(self, volume):
        pass

    def create_snapshot(self, snapshot):
        return {}

    def delete_snapshot(self, snapshot):
        pass

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector, **kwargs):
        target = {"target_discovered": False, "target_portal": "127.0.0.1:3260", "target_iqn": f"iqn.bedplate:{volume.id}", "target_lun": 1}
        return {"driver_volume_type": "iscsi", "data": target}

    def terminate_connection(self, volume, connector, **kwargs):
        pass
