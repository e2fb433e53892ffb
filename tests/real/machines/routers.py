"""Runs Neutron's routers, each a network namespace: gateways of tenants' networks, and floating IPs.

The namespaces follow what Neutron's API says. Security groups are ignored: nothing is filtered.
"""

import ipaddress

import wires

OWNERS = ["network:router_interface", "network:router_gateway"]


class Routers:
    def __init__(self, apis):
        self.apis = apis
        self.subnets = {}
        self.mtus = {}
        self.plugged = {}  # port: its router
        self.rules = {}  # router: the last input of iptables-restore
        self.host = None  # the external network whose gateway is the host

    def turn(self):
        routers = {router["id"]: router for router in self.apis.network("routers")}
        ports = self.apis.network("ports", device_owner=OWNERS)
        floating = self.apis.network("floatingips")
        ports = [port for port in ports if port["device_id"] in routers and port["fixed_ips"]]
        self._plug_the_host()
        self._unplug({port["id"] for port in ports}, set(routers))
        for identity, router in routers.items():
            own = [port for port in ports if port["device_id"] == identity]
            self._settle(router, own, [address for address in floating if address["router_id"] == identity])

    def subnet(self, identity):
        if identity not in self.subnets:
            self.subnets[identity] = self.apis.network("subnets", id=identity)[0]
        return self.subnets[identity]

    def plug(self, namespace, device, port):
        """Connects a port of Neutron by a cable, with the port's addresses and MTU."""
        network = port["network_id"]
        if network not in self.mtus:
            self.mtus[network] = self.apis.network("networks", id=network)[0]["mtu"]
        addresses = [self.with_prefix(fixed) for fixed in port["fixed_ips"]]
        wires.plug(namespace, device, network, port["id"], port["mac_address"], addresses, self.mtus[network])

    def with_prefix(self, fixed):
        return f"{fixed['ip_address']}/{self.subnet(fixed['subnet_id'])['cidr'].split('/')[1]}"

    def _plug_the_host(self):
        """Makes the host the gateway of the external network, with everything beyond that network."""
        if self.host:
            return
        for network in self.apis.network("networks", **{"router:external": True}):
            subnet = self.subnet(network["subnets"][0])
            address = f"{subnet['gateway_ip']}/{subnet['cidr'].split('/')[1]}"
            wires.plug(None, wires.HOST, network["id"], "host-public", "02:00:00:00:00:01", [address])
            self.host = network["id"]
            return

    def _unplug(self, ports, routers):
        for port in set(self.plugged) - ports:
            wires.unplug(port)
            del self.plugged[port]
        for router in set(self.rules) - routers:
            wires.remove_namespace(namespace(router))
            del self.rules[router]

    def _settle(self, router, ports, floating):
        name = namespace(router["id"])
        if router["id"] not in self.rules:
            wires.add_namespace(name)
            wires.inside(name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
            self.rules[router["id"]] = None
        gateway = None
        for port in ports:
            device = f"q{port['id'][:11]}"
            if port["id"] not in self.plugged:
                self.plug(name, device, port)
                self.plugged[port["id"]] = router["id"]
            if port["device_owner"] == "network:router_gateway":
                gateway = port
                beyond = self.subnet(port["fixed_ips"][0]["subnet_id"])["gateway_ip"]
                if beyond:
                    wires.route(name, beyond)
        rules = translation(router, gateway, floating) if gateway else "*nat\nCOMMIT\n*mangle\nCOMMIT\n"
        if rules != self.rules[router["id"]]:
            if gateway:
                device = f"q{gateway['id'][:11]}"
                settle_addresses(name, device, {address["floating_ip_address"] for address in floating if address["port_id"]})
            wires.inside(name, "iptables-restore", text=rules)
            self.rules[router["id"]] = rules


def namespace(router):
    return f"{wires.PREFIX}router-{router[:13]}"


def settle_addresses(name, device, wanted):
    """Sets the floating IPs of a router on its gateway device, each as a /32."""
    shown = wires.run("ip", "-n", name, "-o", "-4", "address", "show", "dev", device)
    present = {ipaddress.ip_interface(line.split()[3]) for line in shown.splitlines()}
    present = {str(address.ip) for address in present if address.network.prefixlen == 32}
    for address in present - wanted:
        wires.run("ip", "-n", name, "address", "del", f"{address}/32", "dev", device)
    for address in wanted - present:
        wires.run("ip", "-n", name, "address", "add", f"{address}/32", "dev", device)


def translation(router, gateway, floating):
    """The address translation of a router, as input for iptables-restore."""
    device = f"q{gateway['id'][:11]}"
    own = gateway["fixed_ips"][0]["ip_address"]
    lines = ["*mangle", f"-A PREROUTING -i {device} -j MARK --set-mark 0x2", "COMMIT", "*nat"]
    for address in floating:
        if address["port_id"]:
            lines.append(f"-A PREROUTING -d {address['floating_ip_address']} -j DNAT --to {address['fixed_ip_address']}")
            lines.append(f"-A POSTROUTING -o {device} -s {address['fixed_ip_address']} -j SNAT --to {address['floating_ip_address']}")
    if (router["external_gateway_info"] or {}).get("enable_snat"):
        lines.append(f"-A POSTROUTING -o {device} -j SNAT --to {own}")
    # a request for a floating IP from within gets its answer through this router
    lines.append(f"-A POSTROUTING -m mark ! --mark 0x2 -m conntrack --ctstate DNAT -j SNAT --to {own}")
    return "\n".join([*lines, "COMMIT", ""])
