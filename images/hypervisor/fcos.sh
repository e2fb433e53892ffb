#!/usr/bin/env bash
# fcos.sh FILE - writes FILE: the Ignition config that makes a Fedora CoreOS a compute host, with services in containers of Kolla.
#
# Use FILE if Fedora CoreOS is installed instead of hypervisor.qcow2: a config with the cloud's settings merges FILE by its URL and SHA-256.
# fcos/tree holds the files, fcos/units the units. Needs jq.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
FILE=${1:?usage: fcos.sh FILE}

files() { # prints one JSON object per file; as text, so that the config stays readable
  local path
  while IFS= read -r path; do
    jq -n --arg path "/$path" --rawfile text "$HERE/fcos/tree/$path" \
      '{path: $path, mode: 420, overwrite: true, contents: {source: ("data:," + ($text | @uri))}}'
  done < <(cd "$HERE/fcos/tree" && find . -type f -printf '%P\n' | LC_ALL=C sort)
  jq -n --rawfile text "$HERE/tree/usr/lib/bedplate/local-address" \
    '{path: "/etc/bedplate/local-address", mode: 493, overwrite: true, contents: {source: ("data:," + ($text | @uri))}}'
}
units() {
  local path
  for path in "$HERE"/fcos/units/*; do
    jq -n --arg name "${path##*/}" --rawfile text "$path" '{name: $name, enabled: true, contents: $text}'
  done
}

# Kolla's images use these ids for nova and neutron, and those users own the settings.
jq -n --slurpfile files <(files) --slurpfile units <(units) '{
  ignition: {version: "3.3.0"},
  passwd: {groups: [{name: "neutron", gid: 42435}, {name: "nova", gid: 42436}]},
  storage: {
    directories: [
      "/etc/libvirt/qemu", "/etc/neutron/neutron.conf.d", "/etc/nova/nova.conf.d", "/var/lib/libvirt", "/var/lib/nova", "/var/lib/openvswitch"
      | {path: ., mode: 493}
    ],
    files: $files
  },
  systemd: {units: $units}
}' >"$FILE"
