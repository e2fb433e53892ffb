#!/usr/bin/env bash
# run.sh STAGE... - runs make's targets stage by stage, and ends with a table of their times.
#
# A stage names targets that run one after the other; "a b | c" runs the lanes `a b` and `c` in parallel. The output of a target is kept in
# target/log/TARGET.log and printed as a whole when the target ends, so that lanes do not mix. The first lane has a higher CPU priority,
# because its tests measure time, while tests of machines wait for minutes. After a failure the stage continues, so that one run shows all
# failures, but later stages are skipped.
#
# The table shows the wall time of each target, its CPU time (as root, from a control group; else a dash), its tests and its skips.
# "all of it passed" is printed only if nothing was skipped. If CI is set, a skip fails the run of root, who can install everything.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
LOGS=${BEDPLATE_LOGS:-target/log}
mkdir -p "$LOGS"
rm -f "$LOGS"/*.log "$LOGS"/*.row "$LOGS"/*.skipped
# Work that several targets need is done once for each run (see the Makefile).
BEDPLATE_RUN=$$-$(date +%s)
export BEDPLATE_RUN
GROUPS_V1=/sys/fs/cgroup/cpuacct GROUPS_V2=/sys/fs/cgroup

# Makes a control group that counts CPU time; prints its folder, or nothing if control groups are not writable.
counter() { # NAME
  local root
  for root in "$GROUPS_V1" "$GROUPS_V2"; do
    [ -w "$root/cgroup.procs" ] || continue
    mkdir -p "$root/bedplate-$$-$1" 2>/dev/null && echo "$root/bedplate-$$-$1" && return
  done
}

# Prints the CPU seconds of a control group, and removes the group if it is empty.
counted() { # FOLDER
  if [ -r "$1/cpuacct.usage" ]; then
    echo $(($(cat "$1/cpuacct.usage") / 1000000000))
  elif [ -r "$1/cpu.stat" ]; then
    echo $(($(awk '$1 == "usage_usec" { print $2 }' "$1/cpu.stat") / 1000000))
  else
    echo -
  fi
  rmdir "$1" 2>/dev/null
}

# Prints each skip in these files once: a target's output, and the list that tests/peers writes, because nextest prints no output of a test
# that passed.
skips() { # FILE...
  sed -n 's/^ *SKIPPED/SKIPPED/p' "$@" 2>/dev/null | sort -u
}

target() { # TARGET
  local group log=$LOGS/$1.log begun=$SECONDS status cpu
  group=$(counter "$1")
  BEDPLATE_SKIPPED=$(readlink -f "$LOGS")/$1.skipped
  export BEDPLATE_SKIPPED
  rm -f "$BEDPLATE_SKIPPED"
  (
    [ -z "$group" ] || echo "$BASHPID" >"$group/cgroup.procs"
    exec make --no-print-directory "$1"
  ) >"$log" 2>&1 </dev/null
  status=$?
  cpu=$(counted "${group:-/none}")
  # One lane prints at a time.
  (
    flock 9
    printf '\n==== %s ====\n' "$1"
    cat "$log"
  ) 9>"$LOGS/.printing"
  printf '%s %s %s %s %s %s\n' "$1" "$status" $((SECONDS - begun)) "$cpu" \
    "$(sed 's/\x1b\[[0-9;]*m//g' "$log" | awk '/^ *Summary \[/ { for (i = 1; i < NF; i++) if ($(i + 1) ~ /^tests?$/) n += $i } END { print n + 0 }')" \
    "$(skips "$log" "$BEDPLATE_SKIPPED" | wc -l)" >"$LOGS/$1.row"
  return "$status"
}

lane() { # PRECEDENCE TARGET...
  local one failed=0
  renice -n "$1" "$BASHPID" >/dev/null
  shift
  for one in "$@"; do
    target "$one" || failed=1
  done
  return "$failed"
}

FAILED=0
NAMES=()
for stage in "$@"; do
  read -ra words <<<"${stage//|/ }"
  NAMES+=("${words[@]}")
  [ "$FAILED" = 0 ] || continue
  IFS='|' read -ra lanes <<<"$stage"
  running=()
  precedence=0
  for one in "${lanes[@]}"; do
    read -ra words <<<"$one"
    lane "$precedence" "${words[@]}" &
    running+=($!)
    precedence=5
  done
  for one in "${running[@]}"; do wait "$one" || FAILED=1; done
done

SKIPS=0
printf '\n%-18s %9s %9s %7s %7s  %s\n' target 'wall s' 'CPU s' tests skipped result
for name in "${NAMES[@]}"; do
  if [ ! -s "$LOGS/$name.row" ]; then
    printf '%-18s %9s %9s %7s %7s  %s\n' "$name" - - - - 'not run'
    continue
  fi
  read -r _ status wall cpu tests skipped <"$LOGS/$name.row"
  SKIPS=$((SKIPS + skipped))
  printf '%-18s %9s %9s %7s %7s  %s\n' "$name" "$wall" "$cpu" "$tests" "$skipped" "$([ "$status" = 0 ] && echo passed || echo FAILED)"
done
printf '%-18s %9s\n' total "$SECONDS"

if [ "$SKIPS" != 0 ]; then
  skips "$LOGS"/*.log "$LOGS"/*.skipped
  if [ -n "${CI:-}" ] && [ "$(id -u)" = 0 ]; then
    echo "make test: root can install what these want, so in CI nothing may be skipped"
    FAILED=1
  fi
fi
# The end of a long output is what a reader sees first.
for name in "${NAMES[@]}"; do
  read -r _ status _ 2>/dev/null <"$LOGS/$name.row" || continue
  [ "$status" != 0 ] || continue
  printf '\n==== the last lines of %s ====\n' "$name"
  tail -n 30 "$LOGS/$name.log"
done
if [ "$FAILED" != 0 ]; then
  echo "make test: FAILED"
elif [ "$SKIPS" != 0 ]; then
  echo "make test: what was tried passed; $SKIPS skipped"
else
  echo "make test: all of it passed"
fi
exit "$FAILED"
