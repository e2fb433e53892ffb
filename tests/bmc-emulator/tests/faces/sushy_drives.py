"""Drives one machine with sushy: boots it from the network, reads its inventory, changes its media.

Arguments: URL, user, password, profile.
"""

import sys

import sushy

url, user, password, profile = sys.argv[1:]
poor = profile == "poor"
basic = sushy.auth.BasicAuth(user, password)
root = sushy.Sushy(url, auth=basic if poor else sushy.auth.SessionAuth(user, password))

system = root.get_system(root.get_system_collection().members_identities[0])
assert system.power_state == sushy.PowerState.OFF, system.power_state
assert system.serial_number == "SN-0001"
assert system.memory_summary.size_gib == 128

system.set_system_boot_options(target=sushy.BootSource.PXE, enabled=sushy.BootSourceOverrideEnabled.ONCE)
system.refresh(force=True)
assert system.boot["target"] == sushy.BootSource.PXE, system.boot
system.reset_system(sushy.ResetType.ON)
system.refresh(force=True)
assert system.power_state == sushy.PowerState.ON, system.power_state

manager = root.get_manager(root.get_manager_collection().members_identities[0])
assert manager.firmware_version
if poor:
    sys.exit()

macs = {nic.mac_address.lower() for nic in system.ethernet_interfaces.get_members()}
assert macs == {"52:54:00:00:00:01", "52:54:00:00:00:02"}, macs
drives = [drive for storage in system.storage.get_members() for drive in storage.drives]
assert sorted(drive.capacity_bytes for drive in drives) == [480103981056, 4000787030016]
assert len(system.processors.get_members()) == 1

owner = system if profile == "generic" else manager
media = [medium for medium in owner.virtual_media.get_members() if sushy.VirtualMediaType.CD in medium.media_types][0]
media.insert_media("http://10.0.0.1/ramdisk.iso")
media.refresh(force=True)
assert media.inserted and media.image_name == "ramdisk.iso"
media.eject_media()
media.refresh(force=True)
assert not media.inserted

bios = system.bios
registry = {it.name: it for it in bios.get_attribute_registry().registry_entries.attributes}
assert registry["PowerOnDelay"].upper_bound == 255, registry
assert bios.supported_apply_times == [sushy.APPLY_TIME_ON_RESET]
# sushy sends the tag of the last result, which the settings resource of these services does not have.
if profile in ("lenovo-xcc", "ami-megarac"):
    sys.exit()
bios.set_attributes({"EmbeddedSata": "Raid"}, apply_time=sushy.APPLY_TIME_ON_RESET)
bios.refresh(force=True)
assert bios.attributes["EmbeddedSata"] == "Ahci" and bios.pending_attributes["EmbeddedSata"] == "Raid"
system.reset_system(sushy.ResetType.FORCE_RESTART)
bios.refresh(force=True)
assert bios.attributes["EmbeddedSata"] == "Raid", bios.attributes
bios.reset_bios()
system.reset_system(sushy.ResetType.FORCE_RESTART)
bios.refresh(force=True)
assert bios.attributes["EmbeddedSata"] == "Ahci", bios.attributes

assert system.boot["mode"] == sushy.BootSourceOverrideMode.UEFI, system.boot
system.secure_boot.set_enabled(True)
system.reset_system(sushy.ResetType.FORCE_RESTART)
system.secure_boot.refresh(force=True)
assert system.secure_boot.enabled and system.secure_boot.current_boot == sushy.SecureBootCurrentBoot.ENABLED
