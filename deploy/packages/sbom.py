#!/usr/bin/env python3
"""sbom.py PACKAGE VERSION CRATE TARGET [SOURCES...] - prints the bill of materials of a Debian package, as CycloneDX 1.5.

The bill has every crate that cargo builds for the program of CRATE on TARGET, with its version, licence, checksum and dependencies, and the
Debian sources in the files SOURCES, one `NAME VERSION` a line. SOURCE_DATE_EPOCH is its time, so the same input gives the same bytes.
"""

import datetime
import json
import os
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cargo(*arguments: str) -> str:
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def crate_reference(name: str, version: str) -> str:
    return f"pkg:cargo/{name}@{version}"


def built(crate: str, target: str) -> set[str]:
    """The crates that the build of one program needs: with its features alone, and without what only tests need."""
    of_program = ["--package", crate, "--target", target, "--edges", "normal,build"]
    tree = cargo("tree", "--locked", *of_program, "--prefix", "none", "--format", "{p}")
    words = (line.split() for line in tree.splitlines() if line)
    return {crate_reference(name, version.removeprefix("v")) for name, version, *_ in words}


def crates(crate: str, target: str) -> tuple[list[dict], list[dict]]:
    wanted = built(crate, target)
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", target))
    references, components, dependencies = {}, [], []
    for package in metadata["packages"]:
        name, version = package["name"], package["version"]
        reference = crate_reference(name, version)
        references[package["id"]] = reference
        if reference not in wanted:
            continue
        component = {"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference}
        if package["license"]:
            # An old way to write OR, which is not SPDX.
            expression = " ".join(package["license"].replace("/", " OR ").split())
            component["licenses"] = [{"expression": expression}]
        if checksums[name, version]:
            component["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
        components.append(component)
    for node in metadata["resolve"]["nodes"]:
        if references[node["id"]] in wanted:
            needed = {references[dependency["pkg"]] for dependency in node["deps"]}
            dependencies.append({"ref": references[node["id"]], "dependsOn": sorted(needed & wanted)})
    return components, dependencies


def sources(file: str) -> list[dict]:
    lines = (line.split() for line in Path(file).read_text().splitlines())
    found = ((name, version, f"pkg:deb/debian/{name}@{version}?arch=source") for name, version in lines)
    return [{"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl} for name, version, purl in found]


def main(package: str, version: str, crate: str, target: str, *files: str) -> None:
    components, dependencies = crates(crate, target)
    debian = [component for file in files for component in sources(file)]
    reference = f"pkg:deb/bedplate/{package}@{version}"
    roots = [one["bom-ref"] for one in components if one["name"] == crate] + [one["bom-ref"] for one in debian]
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.UTC)
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{reference}?target={target}')}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": reference, "name": package, "version": version, "purl": reference},
        },
        "components": sorted(components + debian, key=lambda one: one["bom-ref"]),
        "dependencies": sorted([{"ref": reference, "dependsOn": sorted(roots)}, *dependencies], key=lambda one: one["ref"]),
    }
    json.dump(bill, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
