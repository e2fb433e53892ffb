"""Runs Nova's servers, each a machine of machine.sh. The server's folder holds what Nova said about it."""

import json
import os
import shutil
import subprocess

import wires

MACHINE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "machine.sh")
NOTHING = '{"ignition": {"version": "3.0.0"}}'  # the config of an image without user data


def is_alive(path):
    """Whether the process of this pid file still runs. ../processes.sh describes these files."""
    try:
        with open(path) as file:
            pid, start = file.read().split()
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[19] == start
    except (OSError, ValueError):
        return False


class Servers:
    """The servers of a cloud. `read_drive` returns the text of a file on a config drive, or None."""

    def __init__(self, folder, read_drive):
        self.folder, self.read_drive = folder, read_drive

    def boot(self, server, hostname, drive, ports, power_on):
        folder = os.path.join(self.folder, server)
        if os.path.exists(folder):
            shutil.rmtree(folder)
        os.makedirs(folder)
        config = (self.read_drive(drive, "openstack/latest/user_data") if drive else None) or NOTHING
        dns = [dns["address"] for port in ports for subnet in port["network"]["subnets"] for dns in subnet["dns"]]
        written = {
            "namespace": f"{wires.PREFIX}server-{server[:13]}",
            "hostname": hostname,
            "config.ign": config,
            "ports.json": json.dumps(ports, indent=1),
            "resolv.conf": "".join(f"nameserver {address}\n" for address in dns),
        }
        for name, text in written.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        subprocess.run([MACHINE, "prepare", folder], check=True, capture_output=True, text=True)
        if power_on:
            self.start(server)

    def start(self, server):
        if self.state(server) == "running":
            return
        folder, name = self._known(server)
        self._unplug(server)
        wires.add_namespace(name)
        with open(os.path.join(folder, "ports.json")) as file:
            ports = json.load(file)
        for number, port in enumerate(ports):
            subnets = port["network"]["subnets"]
            addresses = [f"{ip['address']}/{subnet['cidr'].split('/')[1]}" for subnet in subnets for ip in subnet["ips"]]
            mtu = port["network"]["meta"].get("mtu") or 1500
            wires.plug(name, f"eth{number}", port["network"]["id"], port["id"], port["address"], addresses, mtu)
        gateways = [subnet["gateway"]["address"] for port in ports for subnet in port["network"]["subnets"] if subnet["gateway"]]
        if gateways:
            wires.route(name, gateways[0])
        # the first process keeps running and must not keep our pipes open
        with open(os.path.join(folder, "start.log"), "w") as log:
            subprocess.run([MACHINE, "start", folder], check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        with open(os.path.join(folder, "on"), "w"):
            pass

    def stop(self, server):
        folder, _ = self._known(server)
        on = os.path.join(folder, "on")
        if os.path.exists(on):
            os.remove(on)
        subprocess.run([MACHINE, "crash", folder], check=True, capture_output=True, text=True)
        self._unplug(server)

    def destroy(self, server):
        folder = os.path.join(self.folder, server)
        if os.path.exists(os.path.join(folder, "namespace")):
            self._known(server)
            self.stop(server)
            subprocess.run([MACHINE, "destroy", folder], check=True, capture_output=True, text=True)
        drive = f"{folder}.iso"
        if os.path.exists(drive):
            os.remove(drive)

    def state(self, server):
        folder = os.path.join(self.folder, server)
        if not os.path.exists(os.path.join(folder, "namespace")):
            return "absent"
        if not os.path.exists(os.path.join(folder, "on")):
            return "off"
        return "running" if is_alive(os.path.join(folder, "pid")) else "crashed"

    def console(self, server):
        """The console output of a server: the boot, and the output of the first process."""
        folder, _ = self._known(server)
        text = ""
        for name in ("boot.log", "disk/var/log/units/runner.log"):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                with open(path, errors="replace") as file:
                    text += file.read()
        return text

    def all(self):
        names = os.listdir(self.folder) if os.path.exists(self.folder) else []
        return [name for name in names if os.path.exists(os.path.join(self.folder, name, "namespace"))]

    def _known(self, server):
        folder = os.path.join(self.folder, server)
        with open(os.path.join(folder, "namespace")) as file:
            return folder, file.read()

    def _unplug(self, server):
        folder, name = self._known(server)
        wires.remove_namespace(name)
