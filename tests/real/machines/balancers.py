"""Runs Octavia's load balancers, each an haproxy in a network namespace with the address of the VIP port.

haproxy gets what Octavia's API says. Octavia gets no reports back, so its operating status stays OFFLINE.
"""

import os
import subprocess

import wires

BALANCE = {"ROUND_ROBIN": "roundrobin", "LEAST_CONNECTIONS": "leastconn", "SOURCE_IP": "source", "SOURCE_IP_PORT": "source"}


class Balancers:
    def __init__(self, apis, routers, folder):
        self.apis, self.routers, self.folder = apis, routers, folder
        self.running = {}  # balancer: (configuration, process)
        self.before = self.seen = {}  # balancer: its last change according to Octavia, at the last two checks

    def turn(self):
        balancers = self.apis.balancer("loadbalancers")
        balancers = {it["id"]: it for it in balancers if it["provisioning_status"] != "PENDING_CREATE"}
        for identity in set(self.running) - set(balancers):
            self._remove(identity)
        changed = {identity: (it["updated_at"], it["provisioning_status"]) for identity, it in balancers.items()}
        # Octavia's timestamps have a resolution of one second, so everything is read again after a change: another may have followed
        if changed == self.seen == self.before and all(process.poll() is None for _, process in self.running.values()):
            return
        listeners, pools = self.apis.balancer("listeners"), self.apis.balancer("pools")
        monitors = {it["id"]: it for it in self.apis.balancer("healthmonitors")}
        members = {pool["id"]: self.apis.balancer(f"pools/{pool['id']}/members", "members") for pool in pools}
        for identity, balancer in balancers.items():
            own = [it for it in listeners if {"id": identity} in it["loadbalancers"] and it["admin_state_up"]]
            behind = [it for it in pools if {"id": identity} in it["loadbalancers"] and it["admin_state_up"]]
            self._settle(balancer, configuration(balancer, own, behind, members, monitors))
        self.before, self.seen = self.seen, changed

    def _settle(self, balancer, text):
        identity = balancer["id"]
        before = self.running.get(identity)
        if before and before[0] == text and before[1].poll() is None:
            return
        name = namespace(identity)
        if not before:
            self._plug(balancer, name)
        path = os.path.join(self.folder, f"{identity}.cfg")
        with open(path, "w") as file:
            file.write(text)
        command = ["ip", "netns", "exec", name, "haproxy", "-db", "-f", path]
        if before and before[1].poll() is None:
            command += ["-sf", str(before[1].pid)]
        with open(os.path.join(self.folder, f"{identity}.log"), "a") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.running[identity] = (text, process)

    def _plug(self, balancer, name):
        port = self.apis.network("ports", id=balancer["vip_port_id"])[0]
        wires.add_namespace(name)
        self.routers.plug(name, "eth0", port)
        gateway = self.routers.subnet(balancer["vip_subnet_id"])["gateway_ip"]
        if gateway:
            wires.route(name, gateway)

    def _remove(self, identity):
        _, process = self.running.pop(identity)
        process.kill()
        process.wait()
        wires.remove_namespace(namespace(identity))


def namespace(balancer):
    return f"{wires.PREFIX}balancer-{balancer[:13]}"


def configuration(balancer, listeners, pools, members, monitors):
    lines = ["global", "  maxconn 4000", "defaults", "  mode tcp", "  timeout connect 5s", "  timeout client 1h", "  timeout server 1h"]
    # haproxy needs at least one proxy
    lines += ["listen nothing", "  bind unix@/run/bedplate-nothing-" + balancer["id"]] if not listeners else []
    for listener in sorted(listeners, key=lambda it: it["protocol_port"]):
        lines += [f"frontend {listener['id']}", f"  bind {balancer['vip_address']}:{listener['protocol_port']}"]
        if listener.get("allowed_cidrs"):
            lines.append(f"  tcp-request connection reject if !{{ src {' '.join(listener['allowed_cidrs'])} }}")
        if listener["default_pool_id"]:
            lines.append(f"  default_backend {listener['default_pool_id']}")
    for pool in sorted(pools, key=lambda it: it["id"]):
        lines += backend(pool, members[pool["id"]], monitors.get(pool.get("healthmonitor_id")))
    return "\n".join([*lines, ""])


def backend(pool, members, monitor):
    lines = [f"backend {pool['id']}", f"  balance {BALANCE[pool['lb_algorithm']]}"]
    check = ""
    if monitor and monitor["admin_state_up"]:
        check = f" check inter {monitor['delay']}s rise {monitor['max_retries']} fall {monitor['max_retries_down']}"
        lines.append(f"  timeout check {monitor['timeout']}s")
        if monitor["type"] in ("HTTP", "HTTPS"):
            lines.append(f"  option httpchk {monitor['http_method']} {monitor['url_path']}")
            lines.append(f"  http-check expect rstatus ^({monitor['expected_codes'].replace(',', '|')})$")
            check += " check-ssl verify none" if monitor["type"] == "HTTPS" else ""
        elif monitor["type"] == "TLS-HELLO":
            lines.append("  option ssl-hello-chk")
    for member in sorted(members, key=lambda it: it["id"]):
        if member["admin_state_up"] and member["provisioning_status"] != "PENDING_CREATE":
            backup = " backup" if member["backup"] else ""
            lines.append(f"  server {member['id']} {member['address']}:{member['protocol_port']} weight {member['weight']}{backup}{check}")
    return lines
