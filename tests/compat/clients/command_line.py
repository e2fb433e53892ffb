"""Runs `openstack` commands, one process each, without the time for Python's start and imports.

Reads one JSON list of arguments per line on standard input and answers each with one line
{"code": exit code, "stdout": text, "stderr": text}. The client is imported once, and every command runs in a fork of that process,
so commands share no state. The entry point is the users' one: `openstackclient.shell.main`.
"""

import gc
import importlib.metadata
import json
import os
import sys
import tempfile

from keystoneauth1 import loading
from openstackclient import shell


def import_plugins():
    """Imports the modules that the client finds by entry point: commands and authentication types."""
    loading.get_available_plugin_loaders()
    for group in ("openstack.baremetal.v1", "openstack.container_infra.v1", "openstack.load_balancer.v2", "openstack.dns.v2"):
        for entry_point in importlib.metadata.entry_points(group=group):
            entry_point.load()
    for name in ("baremetal", "container_infra", "load_balancer", "dns"):
        for entry_point in importlib.metadata.entry_points(group="openstack.cli.extension", name=name):
            entry_point.load()


def run_in_fork(arguments):
    """Runs one command in a process of its own."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        child = os.fork()
        if child == 0:
            os.dup2(stdout.fileno(), 1)
            os.dup2(stderr.fileno(), 2)
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
        return {"code": os.waitstatus_to_exitcode(status), "stdout": whole(stdout), "stderr": whole(stderr)}


def whole(file):
    """Reads a whole file from its start."""
    file.seek(0)
    return file.read().decode(errors="replace")


def main():
    """Runs commands until standard input ends."""
    import_plugins()
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(run_in_fork(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
