#!/usr/bin/env bash
# venv.sh REQUIREMENTS - makes a Python environment with exactly the pinned versions of that file; prints its folder.
#
# The cache keeps the environment under the hash of the file, so a changed pin makes a new environment.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=debian.sh disable=SC1091
. "$HERE/debian.sh"

REQUIREMENTS=${1:?usage: venv.sh REQUIREMENTS}
VENVS=$BEDPLATE_CACHE/venv
VENV=$VENVS/$({ cat "$REQUIREMENTS"; python3 --version; } | sha256sum | cut -c1-16)

mkdir -p "$VENVS"
exec 9>"$VENV.lock"
flock 9
if [ ! -f "$VENV/.complete" ]; then
  say "making $VENV from $REQUIREMENTS"
  rm -rf "$VENV"
  python3 -m venv "$VENV" >&2
  "$VENV/bin/pip" -q --disable-pip-version-check install -r "$REQUIREMENTS" >&2
  "$VENV/bin/python" -m compileall -q "$VENV/lib" >/dev/null 2>&1 || true
  touch "$VENV/.complete"
fi
printf '%s\n' "$VENV"
