#!/usr/bin/env python3
"""image.py NAME:TAG OUT.tar [--tree TREE] [--entry WORDS] [--directory D] [--link PATH=TARGET] [--file FILE=/path]

Writes a container image of one layer from plain files, as an archive that containerd imports. The shared libraries of programs within
TREE
are added. The same files always give the same bytes."""

import argparse
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile


class Layer:
    def __init__(self, tree):
        self.tree = tree
        self.members = {}  # path: ("file", source, mode), ("link", target) or ("directory", mode)

    def inside(self, *command):
        return subprocess.run(["chroot", self.tree, *command], capture_output=True, text=True, check=False).stdout

    def add_file(self, source, path):
        if source.startswith(self.tree + "/"):
            for library in re.findall(r"(/\S+) \(0x", self.inside("ldd", source[len(self.tree) :])):
                real = self.tree + self.inside("readlink", "-f", library).strip()
                self.members.setdefault(library.lstrip("/"), ("file", real, 0o755))
        source = os.path.realpath(source)
        self.members[path.lstrip("/")] = ("file", source, 0o755 if os.access(source, os.X_OK) else 0o644)

    def add_directory(self, path):
        path = path.strip("/")
        self.members[path] = ("directory", 0o1777 if path == "tmp" else 0o755)

    def add_link(self, path, target):
        self.members[path.lstrip("/")] = ("link", target)

    def bytes(self):
        for path in list(self.members):
            while path := os.path.dirname(path):
                self.members.setdefault(path, ("directory", 0o755))
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path, member in sorted(self.members.items()):
                info = tarfile.TarInfo(path)
                match member:
                    case ("directory", mode):
                        info.type, info.mode = tarfile.DIRTYPE, mode
                        archive.addfile(info)
                    case ("link", target):
                        info.type, info.linkname, info.mode = tarfile.SYMTYPE, target, 0o777
                        archive.addfile(info)
                    case ("file", source, mode):
                        with open(source, "rb") as file:
                            data = file.read()
                        info.size, info.mode = len(data), mode
                        archive.addfile(info, io.BytesIO(data))
        return buffer.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("out")
    parser.add_argument("--tree", default="/")
    parser.add_argument("--entry", nargs="*", default=None)
    parser.add_argument("--directory", action="append", default=[])
    parser.add_argument("--link", action="append", default=[])
    parser.add_argument("--file", action="append", default=[])
    arguments = parser.parse_args()

    layer = Layer(arguments.tree)
    for pair in arguments.file:
        layer.add_file(*pair.rsplit("=", 1))
    for path in arguments.directory:
        layer.add_directory(path)
    for pair in arguments.link:
        layer.add_link(*pair.split("=", 1))
    data = layer.bytes()

    digest = hashlib.sha256(data).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "Entrypoint": arguments.entry,
            "WorkingDir": "/",
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": "1970-01-01T00:00:00Z"}],
    }
    config = json.dumps(config, sort_keys=True).encode()
    name = hashlib.sha256(config).hexdigest()
    manifest = [{"Config": f"{name}.json", "RepoTags": [arguments.name], "Layers": [f"{digest}/layer.tar"]}]
    members = ((f"{name}.json", config), (f"{digest}/layer.tar", data), ("manifest.json", json.dumps(manifest).encode()))
    with tarfile.open(arguments.out, "w") as archive:
        for path, content in members:
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(content), 0o644
            archive.addfile(info, io.BytesIO(content))


if __name__ == "__main__":
    main()
