"""Cables and switches: a bridge for each of Neutron's networks, and network namespaces connected to the bridges.

The bridges are in a separate namespace and have no addresses, so networks of different tenants may use the same ones.
"""

import contextlib
import subprocess
import threading

PREFIX = "bedplate-cloud-"  # of the names of all network namespaces made here
SWITCH = PREFIX + "switch"
HOST = "bedplate-public"  # the host's end of the cable to an external network
switching = threading.RLock()


def run(*words, text=None):
    return subprocess.run(words, input=text, text=True, capture_output=True, check=True).stdout


def inside(namespace, *words, text=None):
    return run("ip", "netns", "exec", namespace, *words, text=text)


def namespaces():
    names = (line.split()[0] for line in run("ip", "netns", "list").splitlines() if line)
    return {name for name in names if name.startswith(PREFIX)}


def add_namespace(namespace):
    with switching:
        if namespace not in namespaces():
            run("ip", "netns", "add", namespace)
            run("ip", "-n", namespace, "link", "set", "lo", "up")


def remove_namespace(namespace):
    with contextlib.suppress(subprocess.CalledProcessError):
        run("ip", "netns", "del", namespace)


def _bridge(network):
    name = f"brq{network[:11]}"
    add_namespace(SWITCH)
    try:
        run("ip", "-n", SWITCH, "link", "show", name)
    except subprocess.CalledProcessError:
        run("ip", "-n", SWITCH, "link", "add", name, "type", "bridge", "forward_delay", "0")
        run("ip", "-n", SWITCH, "link", "set", name, "up")
    return name


def plug(namespace, device, network, port, mac, addresses, mtu=1500):
    """Connects a namespace (or the host, if None) to a network, with addresses such as 10.0.0.5/24."""
    tap = f"tap{port[:11]}"
    at = ["-n", namespace] if namespace else []
    with switching:
        unplug(port)  # left by an interrupted attempt
        bridge = _bridge(network)
        far = ["netns", namespace or "1"]
        run("ip", "-n", SWITCH, "link", "add", tap, "mtu", str(mtu), "type", "veth", "peer", "name", device, *far)
        run("ip", "-n", SWITCH, "link", "set", tap, "master", bridge, "up")
    run("ip", *at, "link", "set", device, "address", mac, "mtu", str(mtu))
    for address in addresses:
        run("ip", *at, "address", "add", address, "dev", device)
    run("ip", *at, "link", "set", device, "up")


def unplug(port):
    with contextlib.suppress(subprocess.CalledProcessError):
        run("ip", "-n", SWITCH, "link", "del", f"tap{port[:11]}")


def route(namespace, gateway):
    run("ip", "-n", namespace, "route", "replace", "default", "via", gateway)


def remove_all():
    """Removes all namespaces. The host's cable goes with the switch."""
    for namespace in namespaces():
        for process in run("ip", "netns", "pids", namespace).split():
            with contextlib.suppress(subprocess.CalledProcessError):
                run("kill", process)
        remove_namespace(namespace)
