#!/usr/bin/env bash
# background.sh COMMAND... - runs a command in a session of its own, with the lowest CPU priority.
#
# Linux divides the processors between sessions first (autogroups, see sched(7)); `nice` counts only between the processes of a session.
set -euo pipefail
exec setsid bash -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null || true; exec nice -n 19 "$@"' background "$@"
