"""Creates, lists, shows, changes and deletes one object of each kind with `openstack` commands.

The client is imported once, and every command runs in a fork of that process, so commands share no state.
"""

import importlib.metadata
import json
import os
import shlex
import sys
import tempfile
import time

from keystoneauth1 import loading
from openstackclient import shell


def run(arguments):
    """Runs one command in a process of its own. Returns its exit code, output and errors."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            code = 1
            try:
                code = shell.main(arguments)
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else 1
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code or 0)
        _, status = os.waitpid(child, 0)
        for file in (out, err):
            file.seek(0)
        return os.waitstatus_to_exitcode(status), out.read().decode(), err.read().decode()


def openstack(command, cloud="alice"):
    """The output of a command that must succeed."""
    code, out, err = run(["--os-cloud", cloud, *shlex.split(command)])
    assert code == 0, f"openstack {command}\n{out}\n{err}"
    return out


def ask(command, cloud="alice"):
    """The JSON output of a command that must succeed."""
    return json.loads(openstack(f"{command} -f json", cloud))


def refused(command, words, cloud="alice"):
    """Checks that a command fails with these words."""
    code, out, err = run(["--os-cloud", cloud, *shlex.split(command)])
    assert code != 0 and words in out + err, f"openstack {command}\n{out}\n{err}"


def until(command, key, wanted):
    """Polls until a field has a value."""
    for _ in range(100):
        if ask(command)[key] == wanted:
            return
        time.sleep(0.1)
    raise AssertionError(f"{command}: {key} is never {wanted}")


def until_gone(command):
    """Polls until the object is gone."""
    for _ in range(100):
        if run(["--os-cloud", "alice", *shlex.split(command)])[0] != 0:
            return
        time.sleep(0.1)
    raise AssertionError(f"{command}: always there")


def names(command):
    return [row["Name"] for row in ask(command)]


def network():
    openstack("network create net")
    openstack("subnet create --network net --subnet-range 10.2.0.0/24 sub")
    openstack("router create router")
    openstack("router set --external-gateway public router")
    openstack("router add subnet router sub")
    openstack("security group create group")
    openstack("security group rule create --protocol tcp --dst-port 6443 --remote-ip 0.0.0.0/0 group")
    assert len(ask("security group rule list group")) == 3
    openstack("port create --network net --fixed-ip ip-address=10.2.0.50 --security-group group port")
    openstack("port set --tag bedplate port")
    assert names("port list --tags bedplate") == ["port"]
    assert ask("port show port")["fixed_ips"][0]["ip_address"] == "10.2.0.50"
    refused("network delete net", "ports still in use")
    address = ask("floating ip create --port port public")["floating_ip_address"]
    assert ask(f"floating ip show {address}")["fixed_ip_address"] == "10.2.0.50"
    assert ask("network show net")["mtu"] > 0
    assert sorted(names("network list")) == ["net", "public"]
    return address


def compute():
    with tempfile.NamedTemporaryFile("w", suffix=".pub") as key:
        key.write("ssh-ed25519 AAAA somebody\n")
        key.flush()
        openstack(f"keypair create --public-key {key.name} key")
    assert names("keypair list") == ["key"]
    group = ask("server group create --policy soft-anti-affinity apart")["id"]
    with tempfile.NamedTemporaryFile("w") as data:
        data.write('{"ignition": {"version": "3.3.0"}}')
        data.flush()
        openstack(
            f"server create --image cirros --flavor m1.tiny --port port --key-name key --hint group={group}"
            f" --user-data {data.name} --config-drive true --property role=worker --wait server"
        )
    shown = ask("server show server")
    assert (shown["status"], shown["properties"]) == ("ACTIVE", {"role": "worker"}), shown
    assert names("server list") == ["server"]
    assert len(ask("server group show apart")["members"]) == 1
    for verb, status in [("stop", "SHUTOFF"), ("start", "ACTIVE"), ("pause", "PAUSED"), ("unpause", "ACTIVE")]:
        openstack(f"server {verb} server")
        until("server show server", "status", status)
    openstack("server reboot --hard --wait server")
    assert "guest: joined" in openstack("console log show server")
    assert ask("console url show server")["url"].startswith("http")
    openstack("server set --property zone=a server")
    openstack("server image create --wait --name snapshot server")
    openstack("image delete snapshot")
    assert ask("server event list server")[-1]["Action"] == "create"
    assert "m1.tiny" in names("flavor list")
    assert ask("flavor show m1.tiny")["ram"] == 512
    assert {row["Zone Name"] for row in ask("availability zone list --compute")} == {"nova", "az2"}
    assert {row["Name"]: row["Value"] for row in ask("limits show --absolute")}["instances_used"] == 1
    refused("server create --image cirros --flavor no-such --nic none other", "No Flavor found")


def volumes():
    openstack("volume create --size 1 volume")
    until("volume show volume", "status", "available")
    openstack("server add volume server volume")
    until("volume show volume", "status", "in-use")
    openstack("server remove volume server volume")
    until("volume show volume", "status", "available")
    openstack("volume snapshot create --volume volume snapshot")
    until("volume snapshot show snapshot", "status", "available")
    assert names("volume list") == ["volume"]
    openstack("volume snapshot delete snapshot")
    until_gone("volume snapshot show snapshot")
    openstack("volume delete volume")


def load_balancer():
    openstack("loadbalancer create --name balancer --vip-subnet-id sub --wait")
    openstack("loadbalancer listener create --name api --protocol TCP --protocol-port 6443 --wait balancer")
    openstack("loadbalancer pool create --name pool --protocol TCP --lb-algorithm ROUND_ROBIN --listener api --wait")
    openstack("loadbalancer member create --name member --address 10.2.0.50 --protocol-port 6443 --subnet-id sub --wait pool")
    openstack("loadbalancer healthmonitor create --name monitor --type TCP --delay 5 --timeout 3 --max-retries 3 --wait pool")
    assert ask("loadbalancer show balancer")["provisioning_status"] == "ACTIVE"
    tree = json.loads(openstack("loadbalancer status show balancer"))
    assert tree["loadbalancer"]["listeners"][0]["pools"][0]["members"][0]["address"] == "10.2.0.50"
    for command in ["loadbalancer list", "loadbalancer listener list", "loadbalancer pool list", "loadbalancer flavor list"]:
        assert len(ask(command)) == 1, command
    assert [row["address"] for row in ask("loadbalancer member list pool")] == ["10.2.0.50"]
    refused("loadbalancer delete balancer", "it has children")
    openstack("loadbalancer delete --cascade --wait balancer")


def naming(address):
    openstack("zone create --email hostmaster@example.org example.org.")
    openstack("recordset create --type A --record 192.0.2.1 example.org. api")
    until("recordset show example.org. api.example.org.", "status", "ACTIVE")
    openstack("recordset set --record 192.0.2.2 example.org. api.example.org.")
    assert len(ask("recordset list example.org.")) == 3
    floating = ask(f"floating ip show {address}")["id"]
    openstack(f"ptr record set RegionOne:{floating} api.example.org.")
    assert ask("ptr record list")[0]["ptrdname"] == "api.example.org."
    openstack("recordset delete example.org. api.example.org.")
    refused("zone create --email hostmaster@example.org example.org.", "Duplicate Zone")
    openstack("zone delete example.org.")


def identity():
    assert ask("token issue")["project_id"]
    types = {row["Type"] for row in ask("catalog list")}
    assert {"compute", "network", "load-balancer", "dns", "placement", "block-storage", "image", "identity"} <= types
    made = ask("application credential create --role member credential")
    assert made["Secret"]
    assert names("application credential list") == ["credential"]
    openstack("application credential delete credential")
    assert "tenant-b" in names_as_admin("project list")


def names_as_admin(command):
    return [row["Name"] for row in ask(command, "admin")]


def images():
    with tempfile.NamedTemporaryFile() as data:
        data.write(b"x" * 4096)
        data.flush()
        openstack(f"image create --disk-format raw --container-format bare --file {data.name} --property os_distro=x image")
    shown = ask("image show image")
    assert (shown["status"], shown["size"], shown["properties"]["os_distro"]) == ("active", 4096, "x"), shown
    assert "image" in names("image list")
    openstack("image set --property a=b --tag t image")
    openstack("image delete image")


def administration():
    assert len(ask("resource provider list", "admin")) == 4
    fits = ask("--os-placement-api-version 1.39 allocation candidate list --resource VCPU=1", "admin")
    assert len(fits) == 4
    assert len(ask("hypervisor list", "admin")) == 4
    openstack("quota set --instances 3 --ports 40 tenant-a", "admin")
    limits = {row["Resource"]: row["Limit"] for row in ask("quota show tenant-a", "admin")}
    assert (limits["instances"], limits["ports"]) == (3, 40), limits
    refused("hypervisor list", "Policy doesn't allow")


def main():
    loading.get_available_plugin_loaders()
    for entry_point in importlib.metadata.entry_points(group="openstack.cli.extension"):
        entry_point.load()
    address = network()
    compute()
    volumes()
    load_balancer()
    naming(address)
    identity()
    images()
    administration()
    openstack(f"floating ip delete {address}")
    openstack("server delete --wait server")
    openstack("port delete port")
    openstack("router remove subnet router sub")
    openstack("router delete router")
    openstack("network delete net")
    openstack("security group delete group")
    openstack("server group delete apart")
    openstack("keypair delete key")


if __name__ == "__main__":
    main()
