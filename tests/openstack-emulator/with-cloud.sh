#!/usr/bin/env bash
# with-cloud.sh COMMAND... - runs COMMAND with BEDPLATE_TEST_OPENSTACK set to the clouds.yaml of a new emulated cloud.
#
# If BEDPLATE_TEST_OPENSTACK is set already, that cloud is used. The emulator must be built (target/debug, or BEDPLATE_EMULATOR).
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
EMULATOR=${BEDPLATE_EMULATOR:-$HERE/../../target/debug/openstack-emulator}

[ -z "${BEDPLATE_TEST_OPENSTACK:-}" ] || exec "$@"

FOLDER=$(mktemp -d)
"$EMULATOR" --listen 127.0.0.1:0 --clouds-out "$FOLDER/clouds.yaml" >"$FOLDER/out" &
PID=$!
# A job and not $PID, which may be another process after the emulator has ended: bash knows whether its job still runs.
trap 'kill %1 2>/dev/null || true; rm -rf "$FOLDER"' EXIT
for _ in $(seq 100); do
  [ ! -s "$FOLDER/clouds.yaml" ] || break
  kill -0 "$PID" || { echo "with-cloud.sh: the emulator does not start" >&2; exit 1; }
  sleep 0.1
done
BEDPLATE_TEST_OPENSTACK=$FOLDER/clouds.yaml "$@"
