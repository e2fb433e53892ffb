#!/usr/bin/env bash
# build.sh PROGRAMS RAMDISK OUT - makes the Debian packages in OUT of finished programs and a finished ramdisk, by debhelper.
#
# PROGRAMS has baremetald, clusterd, consoled and bedplate; RAMDISK has what images/ramdisk makes. The same input gives the same bytes. The
# packages are for Debian 12 and 13: programs that were linked on Debian 12 run on both.
#   ARCHITECTURE  the programs' architecture: amd64 (default) or arm64, for which Debian's gcc-aarch64-linux-gnu strips the programs
#   NATIVE        a bedplate that runs here and writes its manual (default PROGRAMS/bedplate)
#   RAMDISK_ARM64 a ramdisk for machines with 64-bit ARM, if there is one
#   VERSION       the version of the packages (default: of Cargo.toml, and of the commit unless a release has this commit)
#   COMPRESSION   the level of xz (default 6)
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
ROOT=$(readlink -f "$HERE/../..")
PROGRAMS=$(readlink -f "${1:?usage: build.sh PROGRAMS RAMDISK OUT}") RAMDISK=$(readlink -f "${2:?}") OUT=$(readlink -m "${3:?}")
ARCHITECTURE=${ARCHITECTURE:-amd64} NATIVE=${NATIVE:-$PROGRAMS/bedplate}
export COMPRESSION=${COMPRESSION:-6}
# shellcheck source-path=SCRIPTDIR source=version.sh
. "$HERE/version.sh"
for file in "$PROGRAMS"/{baremetald,clusterd,consoled,bedplate} "$RAMDISK"/{kernel,ramdisk,ramdisk.iso,sources}; do
  [ -f "$file" ] || { echo "there is no $file: run \`make packages\`" >&2; exit 1; }
done

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
TREE=$WORK/bedplate
umask 022
mkdir -p "$TREE"/{programs,completions,man,ramdisk/ramdisk} "$OUT"
cp -r --no-preserve=timestamps "$HERE/debian" "$ROOT/deploy/systemd" "$TREE/"
cp "$ROOT/CHANGELOG.md" "$TREE/NEWS.md"
cp "$PROGRAMS"/{baremetald,clusterd,consoled,bedplate} "$TREE/programs/"
cp "$RAMDISK"/{kernel,ramdisk,ramdisk.iso} "$TREE/ramdisk/ramdisk/"
SOURCES=("$RAMDISK/sources")
if [ -n "${RAMDISK_ARM64:-}" ]; then
  mkdir "$TREE/ramdisk/ramdisk-arm64"
  cp "$RAMDISK_ARM64"/{kernel,ramdisk} "$TREE/ramdisk/ramdisk-arm64/"
  SOURCES+=("$RAMDISK_ARM64/sources")
fi

"$NATIVE" completion bash >"$TREE/completions/bedplate"
"$NATIVE" completion fish >"$TREE/completions/bedplate.fish"
"$NATIVE" completion zsh >"$TREE/completions/_bedplate"
"$NATIVE" man "$TREE/man/man1" >/dev/null
daemon() { # NAME CONFIG: its manual page and its unit
  local about
  about=$(sed -n 's/^Description=//p' "$ROOT/deploy/systemd/$1.service")
  sed -e "s|@NAME@|$1|g; s|@CONFIG@|$2|g; s|@VERSION@|$VERSION|; s|@ABOUT@|$about|" \
    -e "s|@DATE@|$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)|" "$HERE/man/daemon.8" >"$TREE/man/$1.8"
}
daemon baremetald baremetald.toml
daemon clusterd clusterd.toml
daemon consoled console.toml
for unit in baremetald clusterd; do cp "$ROOT/deploy/systemd/$unit.service" "$TREE/debian/bedplate-$unit.$unit.service"; done
cp "$ROOT/deploy/systemd/consoled.service" "$TREE/debian/bedplate-console.consoled.service"

TARGET=$([ "$ARCHITECTURE" = amd64 ] && echo x86_64-unknown-linux-gnu || echo aarch64-unknown-linux-musl)
bill() { # PACKAGE CRATE TARGET SOURCES...: its bill of materials, as a document of the package
  mkdir -p "$TREE/bills/$1"
  "$HERE/sbom.py" "$1" "$VERSION" "${@:2}" >"$TREE/bills/$1/sbom.cdx.json"
  echo "bills/$1/sbom.cdx.json" >"$TREE/debian/$1.docs"
}
bill bedplate-baremetald baremetal "$TARGET"
bill bedplate-clusterd cluster "$TARGET"
bill bedplate-console console "$TARGET"
bill bedplate bedplate "$TARGET"
bill bedplate-ramdisk agent x86_64-unknown-linux-gnu "${SOURCES[@]}"

printf 'ramdisk:Sources=%s\n' "$(LC_ALL=C sort -u "${SOURCES[@]}" | sed 's/ / (= /; s/$/)/' | paste -sd, | sed 's/,/, /g')" >"$TREE/debian/substvars"
cat >"$TREE/debian/changelog" <<CHANGELOG
bedplate ($VERSION) unstable; urgency=medium

  * See NEWS.md.gz.

 -- $(sed -n 's/^Maintainer: //p' "$HERE/debian/control")  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
CHANGELOG

# The package of the ramdisk is for all architectures, so the build for amd64 makes it.
KIND=$([ "$ARCHITECTURE" = amd64 ] && echo binary || echo binary-arch)
(cd "$TREE" && dpkg-buildpackage --build="$([ "$KIND" = binary ] && echo binary || echo any)" --host-arch "$ARCHITECTURE" \
  --no-check-builddeps --no-sign >"$WORK/log" 2>&1) || { cat "$WORK/log" >&2; exit 1; }
rm -f "$OUT"/*_"$ARCHITECTURE".deb
[ "$ARCHITECTURE" != amd64 ] || rm -f "$OUT"/*_all.deb
mv "$WORK"/*.deb "$OUT/"
