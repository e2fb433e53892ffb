#!/usr/bin/env bash
# release.sh KEY OUT - makes a release in the folder OUT: a signed repository of apt with the packages, the container images, the bills of materials
# of the packages, and signed checksums of all files. KEY names a secret key of gpg; GNUPGHOME is its keyring.
#
# The commit has to have the tag of its version, and no change. The programs are compiled twice, in two folders, and have to be equal.
#   ARCHITECTURES  what to build (default "amd64 arm64")
#   SNAPSHOT=yes   permits a commit without that tag
#   PROGRAMS       finished programs for amd64, which are then not compiled; for tests
#   RAMDISK        a finished ramdisk, which is then not built
#   COMPRESSION    the level of xz for the packages (default 6)
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
ROOT=$(readlink -f "$HERE/../..")
KEY=${1:?usage: release.sh KEY OUT} OUT=$(readlink -m "${2:?}")
die() { printf 'release: %s\n' "$*" >&2; exit 1; }
# shellcheck source-path=SCRIPTDIR source=version.sh
. "$HERE/version.sh"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

if [ "${SNAPSHOT:-}" != yes ]; then
  [ "$VERSION" = "$RELEASE" ] || die "this commit has no tag v$RELEASE"
  [ -z "$(git -C "$ROOT" status --porcelain)" ] || die "the checkout has changes that are in no commit"
  # `--version` of the programs prints this.
  BEDPLATE_VERSION="$VERSION ($(git -C "$ROOT" rev-parse --short=12 HEAD))"
  export BEDPLATE_VERSION
fi
if [ -d "$OUT" ] && [ -n "$(ls -A "$OUT")" ]; then die "$OUT is not empty"; fi

programs() { # ARCHITECTURE: prints the folder of programs that two builds agree on
  local first again=$WORK/checkout-$1 second program
  if [ -n "${PROGRAMS:-}" ]; then
    printf '%s\n' "$PROGRAMS"
    return
  fi
  first=$(ARCHITECTURE=$1 "$HERE/programs.sh")
  git clone --quiet --shared "$ROOT" "$again"
  git -C "$again" checkout --quiet "$(git -C "$ROOT" rev-parse HEAD)"
  second=$(ARCHITECTURE=$1 "$again/deploy/packages/programs.sh")
  for program in baremetald clusterd consoled bedplate; do
    cmp "$first/$program" "$second/$program" >&2 || die "two builds of $program for $1 differ"
  done
  rm -rf "$again"
  printf '%s\n' "$first"
}

if [ -z "${RAMDISK:-}" ]; then
  RAMDISK=$ROOT/target/ramdisk
  "$ROOT/images/ramdisk/build.sh" "$RAMDISK"
  "$ROOT/images/ramdisk/iso.sh" "$RAMDISK"
fi
mkdir -p "$OUT"
for architecture in ${ARCHITECTURES:-amd64 arm64}; do
  folder=$(programs "$architecture")
  [ "$architecture" != amd64 ] || NATIVE=$folder/bedplate
  export ARCHITECTURE=$architecture NATIVE=${NATIVE:-$ROOT/target/x86_64-unknown-linux-gnu/release/bedplate}
  "$HERE/build.sh" "$folder" "$RAMDISK" "$OUT"
  "$HERE/images.sh" "$OUT" "$OUT"
done
for package in "$OUT"/*.deb; do
  name=$(dpkg-deb -f "$package" Package)
  dpkg-deb --fsys-tarfile "$package" | tar -xO "./usr/share/doc/$name/sbom.cdx.json.gz" | gunzip >"${package%.deb}.cdx.json"
done
"$HERE/repository.sh" "$OUT" "$KEY"
