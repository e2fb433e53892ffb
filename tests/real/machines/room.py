#!/usr/bin/env python3
"""room.py FOLDER ROOT - the machine room below the cloud of openstack.sh; it runs until it is stopped.
room.py clear FOLDER - removes what a machine room left behind.

FOLDER holds the folders of servers and the socket `room`, to which Nova's hypervisors connect (openstack/python/bedplate_nova.py).
ROOT is the root of OpenStack's packages. OS_* are the administrator's credentials. Needs root, haproxy, ignition, iptables and the
tree of tree.sh."""

import contextlib
import json
import os
import shutil
import socketserver
import subprocess
import sys
import threading
import time
import traceback

import wires
from apis import Apis
from balancers import Balancers
from routers import Routers
from servers import Servers

PAUSE = 4.0  # seconds between two checks of Neutron and Octavia


class Asked(socketserver.StreamRequestHandler):
    """Answers one line of JSON with one line of JSON."""

    def handle(self):
        servers = self.server.servers
        try:
            asked = json.loads(self.rfile.readline())
            verb, server = asked.pop("verb"), asked.pop("server")
            with self.server.lock_of(server):
                match verb:
                    case "boot":
                        servers.boot(server, **asked)
                    case "start" | "stop" | "destroy":
                        getattr(servers, verb)(server)
                    case "console":
                        return self.answer(text=servers.console(server))
            self.answer(state=servers.state(server))
        except subprocess.CalledProcessError as error:
            self.answer(error=f"{error.cmd}: {error.stderr}")
        except (OSError, ValueError, LookupError) as error:
            traceback.print_exc()
            self.answer(error=repr(error))

    def answer(self, **words):
        self.wfile.write(json.dumps(words).encode() + b"\n")


class Room(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path, servers):
        super().__init__(path, Asked)
        self.servers = servers
        self.locks = {}

    def lock_of(self, server):
        return self.locks.setdefault(server, threading.Lock())


def drive_reader(root):
    def read(drive, name):
        """Reads a file of a config drive. `drive` is a path within the root, which has the program that reads it."""
        run = subprocess.run(["chroot", root, "isoinfo", "-R", "-i", drive, "-x", f"/{name}"], capture_output=True, text=True, check=True)
        return run.stdout

    return read


def clear(folder):
    """Removes machines, disks and cables that a machine room left behind."""
    servers = Servers(folder, None)

    def end(server):
        with contextlib.suppress(subprocess.CalledProcessError, OSError):
            servers.destroy(server)

    endings = [threading.Thread(target=end, args=[server]) for server in servers.all()]
    for ending in endings:
        ending.start()
    for ending in endings:
        ending.join()
    wires.remove_all()
    shutil.rmtree(folder, ignore_errors=True)


def run(folder, root):
    os.makedirs(os.path.join(folder, "balancers"))
    # the path of a socket must be short, but that of a folder may be long
    os.chdir(folder)
    apis = Apis(os.environ)
    routers = Routers(apis)
    balancers = Balancers(apis, routers, os.path.join(folder, "balancers"))
    room = Room("room", Servers(folder, drive_reader(root)))
    threading.Thread(target=room.serve_forever, daemon=True).start()
    while True:
        try:
            routers.turn()
            balancers.turn()
        except subprocess.CalledProcessError as error:
            print(f"{error.cmd}: {error.stderr}", file=sys.stderr, flush=True)
        except (OSError, LookupError):
            # an API that does not answer now will answer later; objects deleted meanwhile are noticed at the next check
            traceback.print_exc()
        time.sleep(PAUSE)


def main():
    if sys.argv[1] == "clear":
        clear(sys.argv[2])
    else:
        folder, root = sys.argv[1:]
        if os.path.exists(folder):
            clear(folder)
        run(folder, root)


if __name__ == "__main__":
    main()
