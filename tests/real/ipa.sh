#!/usr/bin/env bash
# ipa.sh debian|pypi - makes a kernel and a ramdisk with a released ironic-python-agent, and a CD of both; prints their folder.
#
#   debian  the release in Debian trixie, 10.2    pypi  the release of ipa/requirements.txt, 13.0
#
# Both run on the Python libraries and programs of Debian trixie that ipa/packages lists, and with the kernel and the modules of
# images/ramdisk. The cache keeps the packages' tree and both ramdisks under the hashes of their sources. Needs root, for mmdebstrap.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../../images/ramdisk/lib.sh disable=SC1091
. "$HERE/../../images/ramdisk/lib.sh"
# shellcheck source-path=SCRIPTDIR source=suites.sh disable=SC1091
. "$HERE/suites.sh"
RELEASE=${1:-}
case $RELEASE in debian | pypi) ;; *) die "usage: ipa.sh debian|pypi" ;; esac
MODULES=$HERE/../../images/ramdisk/modules
STORE=$CACHE/ipa OUT=$CACHE/ipa/$RELEASE

hash_of() { sha256sum | cut -c1-16; }
listed() { sed 's/#.*//; s/[[:space:]]*$//; /^$/d' "$HERE/ipa/$1"; }
PACKAGES=$(listed packages | tr -s ' \n' ',')
TREE=$STORE/tree-$(echo "$PACKAGES" | hash_of)

make_tree() {
  say "installing the programs and libraries of ironic-python-agent"
  rm -rf --one-file-system "$STORE"/tree-*
  mmdebstrap --variant=essential --include="${PACKAGES%,}" trixie "$TREE.new" \
    "deb [signed-by=$KEYRING] $(debian_mirror) trixie main" >"$STORE/packages.log" 2>&1 ||
    { tail -n 40 "$STORE/packages.log" >&2; die "mmdebstrap failed: see $STORE/packages.log"; }
  mv "$TREE.new" "$TREE"
}

debian_agent() { # FOLDER   unpacks Debian's package, whose Python is that of the tree
  local download
  download=$(mktemp -d)
  read_suites "$download" trixie
  (cd "$download" && suite_get download ironic-python-agent)
  dpkg-deb -x "$download"/*.deb "$1"
  rm -rf "$download"
}
pypi_agent() { # FOLDER   installs the release, without its dependencies, which are Debian's
  "$("$HERE/venv.sh" "$HERE/requirements.txt")/bin/pip" -q --disable-pip-version-check install --no-deps --no-compile \
    --target "$1/usr/lib/python3/dist-packages" -r "$HERE/ipa/requirements.txt" >&2
}

make_ramdisk() { # FOLDER   makes ramdisk and kernel in the folder
  local work=$1/tree command pattern
  cp -a "$TREE" "$work"
  "${RELEASE}_agent" "$work"
  (cd "$work" && listed left-out | while read -r pattern; do eval "rm -rf .$pattern"; done)
  # the agent writes the hash of a rescue password there, and expects the folder
  mkdir -p "$work/usr/local/sbin" "$work/etc/ironic-python-agent.d" "$work/etc/ipa-rescue-config"
  # the ramdisk has no init system
  for command in poweroff reboot; do printf '#!/bin/sh\nexec busybox %s -f\n' $command >"$work/usr/local/sbin/$command"; done
  printf '#!/usr/bin/python3\nfrom ironic_python_agent.cmd.agent import run\nrun()\n' >"$work/usr/local/sbin/ironic-python-agent"
  printf '[DEFAULT]\n' >"$work/etc/ironic-python-agent.conf"
  install -m 755 "$HERE/ipa/init" "$work/init"
  install -m 755 "$HERE/../../images/ramdisk/lease" "$work/etc/lease"
  for command in login ash; do ln -s "$(chroot "$work" sh -c 'command -v busybox')" "$work/usr/local/sbin/$command"; done
  chmod 755 "$work"/usr/local/sbin/*
  # An emulated processor is slow at compiling Python. All files get the same time, so Python must not compare the times.
  chroot "$work" sh -c 'python3 -m compileall -f -q -j0 --invalidation-mode unchecked-hash /usr/lib/python3*' ||
    die "the agent's Python does not compile"
  find_kernel
  # shellcheck disable=SC2046 # one word each
  copy_modules "$work" $(sed 's/#.*//' "$MODULES") sr_mod isofs virtio_rng ext4 crc32c_generic
  # udev reads the binary lists, which busybox does not write
  chroot "$work" depmod "$VERSION"
  archive "$work" | zstd -q -6 -T0 -o "$1/ramdisk"
  cp "$KERNEL/boot/vmlinuz-$VERSION" "$1/kernel"
  rm -rf "$work"
}

[ "$(id -u)" = 0 ] || die "needs root, for the accounts and devices of another system"
needs mmdebstrap chroot
borrows cpio zstd
mkdir -p "$STORE"
exec 9>"$STORE/lock"
flock 9
[ -d "$TREE" ] || make_tree
SOURCES=$({ echo "$TREE"; cat "$0" "$HERE"/ipa/* "$MODULES" "$HERE/../../images/ramdisk/"{lib.sh,lease,iso.sh}; apt-cache depends linux-image-amd64; } | hash_of)
if [ "$(cat "$OUT/made-of" 2>/dev/null)" != "$SOURCES" ]; then
  rm -rf "$OUT" "$OUT.new"
  mkdir -p "$OUT.new"
  make_ramdisk "$OUT.new"
  "$HERE/../../images/ramdisk/iso.sh" "$OUT.new"
  echo "$SOURCES" >"$OUT.new/made-of"
  mv "$OUT.new" "$OUT"
fi
say "$OUT/ramdisk: $(stat -c %s "$OUT/ramdisk") bytes"
printf '%s\n' "$OUT"
