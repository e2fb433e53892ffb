#!/usr/bin/env bash
# build.sh OUT - builds OUT/ramdisk and OUT/kernel, which a machine boots for inspection, cleaning and deployment.
#
# The kernel is Debian's, unchanged. The ramdisk holds the agent, busybox, the modules listed in `modules`, and `init`.
#   AGENT       the static agent; cargo builds it by default
#   AUTHORITIES a PEM file of CA certificates to trust in addition to Debian's
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"
OUT=${1:?usage: build.sh OUT}
needs apt-get apt-cache dpkg-deb awk
borrows cpio zstd

AGENT=${AGENT:-$("$HERE/agent.sh")}
if head -c 4096 "$AGENT" | grep -aqE '/ld-(linux|musl)'; then die "$AGENT is not static"; fi

PACKAGE=$(apt-cache depends linux-image-amd64 | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ {print $2; exit}')
[ -n "$PACKAGE" ] || die "apt knows no linux-image-amd64: run apt-get update"
KERNEL=$(unpacked "$PACKAGE")
BUSYBOX=$(unpacked busybox-static)
AUTHORITY=$(unpacked ca-certificates)
VERSION=${PACKAGE#linux-image-}
BUSYBOX=$(find "$BUSYBOX" -path "*bin/busybox" -type f | head -n 1)
# since trixie, modules are below /usr
[ -d "$KERNEL/lib/modules" ] || ln -s usr/lib "$KERNEL/lib"
MODULES=$KERNEL/lib/modules/$VERSION
if [ ! -f "$MODULES/.listed" ]; then
  "$BUSYBOX" depmod -b "$KERNEL" "$VERSION"
  touch "$MODULES/.listed"
fi

TREE=$(mktemp -d)
trap 'rm -rf "$TREE"' EXIT
umask 022
mkdir -p "$TREE"/{bin,dev,etc/ssl/certs,lib/modules/"$VERSION",proc,run,sys,tmp}

cp "$BUSYBOX" "$TREE/bin/busybox"
ln -s busybox "$TREE/bin/sh"
install -m 755 "$AGENT" "$TREE/bin/ramdisk-agent"
install -m 755 "$HERE/init" "$TREE/init"
install -m 755 "$HERE/lease" "$TREE/etc/lease"
find "$AUTHORITY/usr/share/ca-certificates" -name '*.crt' | LC_ALL=C sort | xargs cat ${AUTHORITIES:+"$AUTHORITIES"} \
  >"$TREE/etc/ssl/certs/ca-certificates.crt"
# the static agent supports only these sources of host names
printf 'hosts: files dns\n' >"$TREE/etc/nsswitch.conf"
printf '127.0.0.1 localhost\n' >"$TREE/etc/hosts"

# with_needs NAME...   prints the files of these modules and of their dependencies, from modules.dep
with_needs() {
  awk -v names="$*" '
    function module(path) { gsub(/.*\/|\.ko.*/, "", path); gsub(/-/, "_", path); return path }
    function take(path,  i, n, list) {
      if (path in taken) return
      taken[path] = 1
      print path
      n = split(needs[path], list, " ")
      for (i = 1; i <= n; i++) take(list[i])
    }
    { path = $1; sub(/:$/, "", path); file[module(path)] = path; $1 = ""; needs[path] = $0 }
    END {
      n = split(names, wanted, " ")
      for (i = 1; i <= n; i++) {
        if (module(wanted[i]) in file) take(file[module(wanted[i])])
        else print "this kernel has no module " wanted[i] >"/dev/stderr"
      }
    }' "$MODULES/modules.dep"
}
# shellcheck disable=SC2046 # one word each
with_needs $(sed 's/#.*//' "$HERE/modules") | while read -r file; do
  install -D -m 644 "$MODULES/$file" "$TREE/lib/modules/$VERSION/$file"
done
cp "$MODULES"/modules.{builtin,order} "$TREE/lib/modules/$VERSION/"
"$BUSYBOX" depmod -b "$TREE" "$VERSION"

mkdir -p "$OUT"
archive "$TREE" | zstd -q -19 --single-thread -o "$OUT/ramdisk.new" -f
mv "$OUT/ramdisk.new" "$OUT/ramdisk"
cp "$KERNEL/boot/vmlinuz-$VERSION" "$OUT/kernel"
say "$OUT/ramdisk: $(stat -c %s "$OUT/ramdisk") bytes, $(find "$TREE/lib/modules" -name '*.ko*' | wc -l) modules;" \
  "$OUT/kernel: $(stat -c %s "$OUT/kernel") bytes of $VERSION"
