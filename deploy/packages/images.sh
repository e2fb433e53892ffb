#!/usr/bin/env bash
# images.sh PACKAGES OUT [NAME...] - makes container images of Debian packages in the folder PACKAGES, as OUT/NAME_VERSION_ARCH.oci.tar: of the named
# packages, else of each with a program.
#
# An image has the program, the libraries of Debian that it is linked with, and CA certificates, and nothing else: no shell, no package manager. It
# runs as user 65532 without capabilities, reads /etc/bedplate, and writes to /var/lib/NAME. The same packages give the same bytes.
#   ARCHITECTURE  amd64 (default) or arm64
#
# Needs root, or user namespaces, for buildah.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
ROOT=$(readlink -f "$HERE/../..")
PACKAGES=${1:?usage: images.sh PACKAGES OUT [NAME...]} OUT=$(readlink -m "${2:?}")
NAMES=("${@:3}")
[ ${#NAMES[@]} != 0 ] || NAMES=(bedplate-baremetald bedplate-clusterd bedplate-console bedplate)
export ARCHITECTURE=${ARCHITECTURE:-amd64}
# shellcheck source-path=SCRIPTDIR source=version.sh
. "$HERE/version.sh"
TIME=$SOURCE_DATE_EPOCH
# shellcheck source-path=SCRIPTDIR source=../../images/ramdisk/lib.sh
. "$ROOT/images/ramdisk/lib.sh"
needs buildah dpkg-deb readelf
lists_of_machine

WORK=$(mktemp -d)
builder() { buildah --root "$WORK/storage" --runroot "$WORK/run" --storage-driver vfs "$@"; }
trap 'rm -rf "$WORK"' EXIT
umask 022
mkdir -p "$OUT"

libraries() { # TREE PROGRAM: copies the libraries that a program needs, with the loader
  local library found
  while read -r library; do
    found=$(find "$(unpacked libc6)" "$(unpacked libgcc-s1)" -name "$library" -path '*/lib*' | head -n 1)
    [ -n "$found" ] || die "$2 needs $library, which is in neither libc6 nor libgcc-s1"
    install -D -m 755 "$found" "$1/lib/$TRIPLET/$library"
  done < <(readelf --dynamic --wide "$2" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  [ -d "$1/lib" ] || return 0
  mkdir -p "$1/${LOADER%/*}"
  install -m 755 "$(find "$(unpacked libc6)" -name "${LOADER##*/}" -path '*/lib*' | head -n 1)" "$1/$LOADER"
}

image() { # PACKAGE PROGRAM [STATE]
  local package=$1 program=$2 state=${3:-} file version tree=$WORK/$1 container settings SOURCES=$WORK/$1.sources
  file=$(find "$PACKAGES" -name "${package}_*_$ARCHITECTURE.deb")
  version=$(dpkg-deb -f "$file" Version)
  dpkg-deb -x "$file" "$WORK/$package.package"
  mkdir -p "$tree"/{etc/bedplate,etc/ssl/certs,usr/bin,usr/share/doc,tmp}
  chmod 1777 "$tree/tmp"
  cp "$WORK/$package.package/usr/bin/$program" "$tree/usr/bin/"
  cp -r "$WORK/$package.package/usr/share/doc/$package" "$tree/usr/share/doc/"
  libraries "$tree" "$tree/usr/bin/$program"
  find "$(unpacked ca-certificates)/usr/share/ca-certificates" -name '*.crt' | LC_ALL=C sort | xargs cat >"$tree/etc/ssl/certs/ca-certificates.crt"
  LC_ALL=C sort -u "$SOURCES" >"$tree/usr/share/doc/$package/debian-sources"
  echo 'bedplate:x:65532:65532::/:/' >"$tree/etc/passwd"
  echo 'bedplate:x:65532:' >"$tree/etc/group"
  echo 'hosts: files dns' >"$tree/etc/nsswitch.conf"
  settings=(--arch "$ARCHITECTURE" --os linux --user 65532:65532 --entrypoint "[\"/usr/bin/$program\"]" --workingdir /
    --label "org.opencontainers.image.title=$package" --label "org.opencontainers.image.version=$version"
    --label org.opencontainers.image.licenses=Apache-2.0)
  container=$(builder from scratch)
  builder add --quiet "$container" "$tree" / >/dev/null
  if [ -n "$state" ]; then
    mkdir "$WORK/$package.state"
    builder add --quiet --chown 65532:65532 --chmod 700 "$container" "$WORK/$package.state" "$state" >/dev/null
    settings+=(--volume "$state")
  fi
  builder config "${settings[@]}" "$container"
  builder commit --quiet --rm --timestamp "$TIME" --format oci "$container" "oci:$WORK/$package.oci:$package:${version//[+~]/-}" >/dev/null
  tar -C "$WORK/$package.oci" --sort=name --mtime="@$TIME" --owner=0 --group=0 --numeric-owner --format=gnu \
    -cf "$OUT/${package}_${version}_$ARCHITECTURE.oci.tar" .
}

for name in "${NAMES[@]}"; do
  case $name in
    bedplate-console) image "$name" consoled ;;
    bedplate-*) image "$name" "${name#bedplate-}" "/var/lib/${name#bedplate-}" ;;
    *) image "$name" "$name" ;;
  esac
done
