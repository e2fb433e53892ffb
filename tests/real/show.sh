#!/usr/bin/env bash
# show.sh - the demonstration of `make run`: a rack of virtual machines goes from powered off to installed. It stays up until Ctrl-C.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=debian.sh disable=SC1091
. "$HERE/debian.sh"
export RACK_NAME=show
RACK=$BEDPLATE_CACHE/racks/$RACK_NAME TARGET=$HERE/../../target
API=http://127.0.0.1:6385
is_root || die "a rack of virtual machines needs root: a network namespace, tap devices, libvirtd"

"$HERE/rack.sh" deps
"$HERE/tiny-image.sh"
say "Bringing up two virtual machines: BIOS with an IPMI BMC, UEFI with a Redfish BMC"
"$HERE/rack.sh" up bios uefi
trap '"$HERE/rack.sh" down' EXIT
trap exit INT TERM HUP
inside() { "$HERE/rack.sh" exec "$@"; }
bedplate() {
  printf '\nbedplate %s\n' "$*"
  inside env BEDPLATE_URL=$API "$TARGET/debug/bedplate" "$@"
}

cat >"$RACK/baremetald.toml" <<C
state_dir = "$RACK/state"
[bmc]
ca_file = "$RACK/ca.pem"
[provisioning]
listen = "10.78.0.1:6386"
kernel = "$TARGET/ramdisk/kernel"
ramdisk = "$TARGET/ramdisk/ramdisk"
iso = "$TARGET/ramdisk/ramdisk.iso"
images = "$BEDPLATE_CACHE/images"
kernel_parameters = ["console=ttyS0", "no_timer_check"]
tftp = "10.78.0.1:69"
router_advertisements = "br0"
[provisioning.dhcp]
interface = "br0"
server = "10.78.0.1"
prefix = 24
range = "10.78.0.100-10.78.0.199"
C
inside "$TARGET/debug/baremetald" --config "$RACK/baremetald.toml" >"$RACK/baremetald.log" 2>&1 &
DAEMON=$!
for _ in $(seq 100); do
  [ ! -s "$RACK/state/listeners.json" ] || break
  kill -0 $DAEMON 2>/dev/null || die "baremetald ended: see $RACK/baremetald.log"
  sleep 0.1
done

bedplate rack enroll "$RACK/rack.yaml"
bedplate rack up show --yes --image http://10.78.0.1:6386/images/tiny.qcow2 \
  --checksum "sha256:$(sha256sum "$BEDPLATE_CACHE/images/tiny.qcow2" | cut -d' ' -f1)"
cat <<C

The rack is installed, and all of it stays up until Ctrl-C. In another terminal, as root:

  alias inside='ip netns exec bedplate-$RACK_NAME'
  inside target/debug/bedplate rack status show
  inside target/debug/bedplate node explain node-0
  tail -f $RACK/node-0/console.log
  inside curl $API/v1/nodes
C
wait $DAEMON
