# shellcheck shell=bash
# version.sh - sets VERSION and SOURCE_DATE_EPOCH of what is built from the checkout in ROOT. Sourced, not run.
#
# The version is that of Cargo.toml. Unless its tag names this commit, the commit's time and hash follow, so that a later commit is newer.
RELEASE=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "${ROOT:?}/Cargo.toml")
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git -C "$ROOT" log -1 --format=%ct)
fi
export SOURCE_DATE_EPOCH
if [ -z "${VERSION:-}" ]; then
  VERSION=$RELEASE
  [ "$(git -C "$ROOT" tag --points-at HEAD --list "v$RELEASE")" = "v$RELEASE" ] ||
    VERSION+=+git$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S).$(git -C "$ROOT" rev-parse --short=8 HEAD)
fi
