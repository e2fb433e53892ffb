#!/usr/bin/env bash
# tool.sh NAME VERSION - a cargo subcommand of exactly that version; prints its program. Built once, and kept in the cache.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=real/debian.sh disable=SC1091
. "$HERE/real/debian.sh"

NAME=${1:?usage: tool.sh NAME VERSION} VERSION=${2:?usage: tool.sh NAME VERSION}
TOOLS=$BEDPLATE_CACHE/tools
PROGRAM=$TOOLS/$NAME-$VERSION/bin/$NAME
mkdir -p "$TOOLS"
exec 9>"$TOOLS/$NAME.lock"
flock 9
if [ ! -x "$PROGRAM" ]; then
  say "building $NAME $VERSION"
  BUILD=$(mktemp -d)
  trap 'rm -rf "$BUILD"' EXIT
  # Away from the workspace, whose wrapper and profile are not the tool's. Optimised little: it runs for a second, and is built on two cores.
  (cd / && env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_TARGET_DIR="$BUILD" \
    cargo install --quiet --locked --root "$TOOLS/$NAME-$VERSION" "$NAME@$VERSION" >&2)
fi
printf '%s\n' "$PROGRAM"
