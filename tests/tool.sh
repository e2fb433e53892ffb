#!/usr/bin/env bash
# tool.sh NAME VERSION - builds a cargo subcommand of exactly this version and prints its path. The program is built once and cached.
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
  # Outside of the workspace, whose wrapper and profile are not meant for the tool. With little optimisation: building takes longer than
  # running.
  (cd / && env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_TARGET_DIR="$BUILD" \
    cargo install --quiet --locked --root "$TOOLS/$NAME-$VERSION" "$NAME@$VERSION" >&2)
fi
printf '%s\n' "$PROGRAM"
