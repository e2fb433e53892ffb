#!/usr/bin/env bash
# build.sh OUT - builds OUT/ramdisk and OUT/kernel, which a machine boots for inspection, cleaning and deployment. OUT/sources lists the Debian
# sources of both, one `NAME VERSION` a line.
#
# The kernel is Debian's, unchanged. The ramdisk holds the agent, busybox, mdadm and mke2fs with their libraries, the modules listed in
# `modules`, `init`, and on amd64 GRUB for disks that boot by BIOS.
#   AGENT        the static agent; cargo builds it by default
#   ARCHITECTURE the machine's: amd64 (default) or arm64
#   AUTHORITIES  a PEM file of CA certificates to trust in addition to Debian's
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"
OUT=${1:?usage: build.sh OUT}
needs apt-get apt-cache dpkg-deb awk
borrows cpio zstd

AGENT=${AGENT:-$(TARGET=$([ "$ARCHITECTURE" = amd64 ] || echo aarch64-unknown-linux-musl) "$HERE/agent.sh")}
if head -c 4096 "$AGENT" | grep -aqE '/ld-(linux|musl)'; then die "$AGENT is not static"; fi

mkdir -p "$OUT"
SOURCES=$OUT/sources
: >"$SOURCES"
lists_of_machine
find_kernel
AUTHORITY=$(unpacked ca-certificates)

TREE=$(mktemp -d)
trap 'rm -rf "$TREE"' EXIT
umask 022
mkdir -p "$TREE"/{bin,dev,etc/ssl/certs,proc,run,sys,tmp}

cp "$BUSYBOX" "$TREE/bin/busybox"
ln -s busybox "$TREE/bin/sh"
install -m 755 "$AGENT" "$TREE/bin/ramdisk-agent"
copy_mdadm "$TREE"
copy_mke2fs "$TREE"
[ "$ARCHITECTURE" != amd64 ] || make_grub "$TREE"
install -m 755 "$HERE/init" "$TREE/init"
install -m 755 "$HERE/lease" "$TREE/etc/lease"
find "$AUTHORITY/usr/share/ca-certificates" -name '*.crt' | LC_ALL=C sort | xargs cat ${AUTHORITIES:+"$AUTHORITIES"} \
  >"$TREE/etc/ssl/certs/ca-certificates.crt"
# the static agent supports only these sources of host names
printf 'hosts: files dns\n' >"$TREE/etc/nsswitch.conf"
printf '127.0.0.1 localhost\n' >"$TREE/etc/hosts"

# shellcheck disable=SC2046 # one word each
copy_modules "$TREE" $(sed 's/#.*//' "$HERE/modules")

archive "$TREE" | zstd -q -19 --single-thread -o "$OUT/ramdisk.new" -f
mv "$OUT/ramdisk.new" "$OUT/ramdisk"
cp "$KERNEL/boot/vmlinuz-$VERSION" "$OUT/kernel"
LC_ALL=C sort -u -o "$SOURCES" "$SOURCES"
say "$OUT/ramdisk: $(stat -c %s "$OUT/ramdisk") bytes, $(find "$TREE/lib/modules" -name '*.ko*' | wc -l) modules;" \
  "$OUT/kernel: $(stat -c %s "$OUT/kernel") bytes of $VERSION"
