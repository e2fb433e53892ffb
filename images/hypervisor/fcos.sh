#!/usr/bin/env bash
# fcos.sh FILE - FILE: the Ignition config that makes a Fedora CoreOS a compute host, its services in containers of the Kolla project.
#
# Where Fedora CoreOS is installed instead of hypervisor.qcow2, a config with the cloud's settings names this file's URL and SHA-256 as one
# to be merged. fcos/tree is what is written, fcos/units what is started. Needs jq.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
FILE=${1:?usage: fcos.sh FILE}

files() { # one JSON object for each; text, so that the config can be read
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

# Kolla's images have nova and neutron by these numbers, and the settings are files of theirs.
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
