"""Compute drivers for Nova: one whose servers run nothing, and one whose servers are machines made of namespaces.

The second driver sends what Nova says about a server to the machine room (tests/real/machines) over its socket, and reports the
room's answer to Nova. The room needs access to namespaces, which this process in the packages' root does not have.
"""

import io
import json
import socket

from nova import exception
from nova.api.metadata import base as metadata
from nova.compute import power_state, task_states
from nova.image import glance
from nova.virt import configdrive, fake, hardware

ROOM = "/state/machines/room"
DRIVE = "/state/machines/{}.iso"
STATES = {"running": power_state.RUNNING, "off": power_state.SHUTDOWN, "crashed": power_state.CRASHED, "absent": power_state.NOSTATE}


def ask(verb, instance, **details):
    with socket.socket(socket.AF_UNIX) as room:
        room.settimeout(120)
        room.connect(ROOM)
        room.sendall(json.dumps({"verb": verb, "server": instance.uuid, **details}).encode() + b"\n")
        answer = json.loads(room.makefile().readline())
    if "error" in answer:
        raise exception.NovaException(f"the machine room cannot {verb}: {answer['error']}")
    return answer


class Pretended(fake.FakeDriver):
    """Adds snapshots to the fake driver, which would leave an image `queued` for ever. This driver sends some bytes to Glance, as
    libvirt's driver sends a disk (`LibvirtDriver.snapshot`)."""

    def snapshot(self, context, instance, image_id, update_task_state):
        if instance.uuid not in self.instances:
            raise exception.InstanceNotRunning(instance_id=instance.uuid)
        update_task_state(task_state=task_states.IMAGE_PENDING_UPLOAD)
        update_task_state(task_state=task_states.IMAGE_UPLOADING, expected_state=task_states.IMAGE_PENDING_UPLOAD)
        disk = io.BytesIO(f"the disk of {instance.uuid}\n".encode())
        glance.API().update(context, image_id, {"disk_format": "raw", "container_format": "bare"}, disk)


class Namespaces(fake.FakeDriver):
    def spawn(
        self,
        context,
        instance,
        image_meta,
        injected_files,
        admin_password,
        allocations,
        network_info=None,
        block_device_info=None,
        power_on=True,
        accel_info=None,
    ):
        drive = None
        if configdrive.required_by(instance):
            drive = DRIVE.format(instance.uuid)
            data = metadata.InstanceMetadata(
                instance, content=injected_files, extra_md={"admin_pass": admin_password}, network_info=network_info
            )
            with configdrive.ConfigDriveBuilder(instance_md=data) as builder:
                builder.make_drive(drive)
        network_info.wait()
        ports = json.loads(network_info.json())
        ask("boot", instance, hostname=instance.hostname, drive=drive, ports=ports, power_on=power_on)
        super().spawn(context, instance, image_meta, injected_files, admin_password, allocations, network_info)

    def destroy(self, context, instance, network_info, block_device_info=None, destroy_disks=True, destroy_secrets=True):
        ask("destroy", instance)
        super().destroy(context, instance, network_info)

    def power_off(self, instance, timeout=0, retry_interval=0):
        ask("stop", instance)

    def power_on(self, context, instance, network_info, block_device_info=None, accel_info=None):
        ask("start", instance)

    def reboot(
        self, context, instance, network_info, reboot_type, block_device_info=None, bad_volumes_callback=None, accel_info=None
    ):
        ask("stop", instance)
        ask("start", instance)

    def get_info(self, instance, use_cache=True):
        state = ask("state", instance)["state"]
        if state == "absent":
            raise exception.InstanceNotFound(instance_id=instance.uuid)
        return hardware.InstanceInfo(state=STATES[state])

    def get_console_output(self, context, instance):
        return ask("console", instance)["text"].encode()

    def refuse(self, *arguments, **named):
        raise NotImplementedError

    pause = unpause = suspend = resume = rescue = unrescue = snapshot = refuse
    migrate_disk_and_power_off = attach_interface = detach_interface = refuse
