#!/usr/bin/env bash
# run.sh STAGE... - runs make's targets stage by stage, and ends with a table of their times.
#
# A stage names targets that run one after the other; "a b | c" runs the lanes `a b` and `c` in parallel. The output of a target is kept in
# target/log/TARGET.log and printed as a whole when the target ends, so that lanes do not mix. After a failure the stage continues, so that
# one run shows all failures, but later stages are skipped.
#
# The table shows the wall time of each target, its CPU time (as root, from a control group; else a dash), its tests and its skips.
# "all of it passed" is printed only if nothing was skipped, and nothing could not be checked. If CI is set, a skip fails the run of root, who
# can install everything.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
LOGS=${BEDPLATE_LOGS:-target/log}
mkdir -p "$LOGS"
rm -f "$LOGS"/*.log "$LOGS"/*.row "$LOGS"/*.skipped
# Work that several targets need is done once for each run (see the Makefile).
BEDPLATE_RUN=$$-$(date +%s)
export BEDPLATE_RUN
# As root each target runs in control groups of its own. They divide the processors between the lanes: without them each machine and each
# daemon of OpenStack, as a session of its own, gets as much as all tests together (autogroups, see sched(7)). And they count CPU time.
# Two targets have twice the share of the others: an OpenStack also computes while nothing asks it, so it has to end soon, and the systemd
# of test-ignition's virtual machine gives up after 90 seconds in one of its steps.
GROUPS_V1=(/sys/fs/cgroup/cpu /sys/fs/cgroup/cpuacct) GROUPS_V2=/sys/fs/cgroup
{ echo +cpu >"$GROUPS_V2/cgroup.subtree_control"; } 2>/dev/null || true

# Makes the control groups of a target, and prints their folders. Prints nothing if control groups are not writable.
groups_of() { # TARGET
  local root made
  for root in "${GROUPS_V1[@]}" "$GROUPS_V2"; do
    [ -w "$root/cgroup.procs" ] || continue
    # Both controllers of version 1 may be one folder with two names.
    made=$(readlink -f "$root")/bedplate-$$-$1
    mkdir -p "$made" 2>/dev/null || continue
    case $1 in test-clouds | test-ignition)
      [ ! -f "$made/cpu.shares" ] || echo 2048 >"$made/cpu.shares"
      [ ! -f "$made/cpu.weight" ] || echo 200 >"$made/cpu.weight"
      ;;
    esac
    echo "$made"
  done | sort -u
}

# Prints the CPU seconds of control groups, and removes the empty ones.
counted() { # FOLDER...
  local group seconds=-
  for group in "$@"; do
    if [ -r "$group/cpuacct.usage" ]; then
      seconds=$(($(cat "$group/cpuacct.usage") / 1000000000))
    elif [ -r "$group/cpu.stat" ] && grep -q usage_usec "$group/cpu.stat"; then
      seconds=$(($(awk '$1 == "usage_usec" { print $2 }' "$group/cpu.stat") / 1000000))
    fi
    rmdir "$group" 2>/dev/null
  done
  echo "$seconds"
}

# Prints each skip in these files once: a target's output, and the list that tests/peers writes, because nextest prints no output of a test
# that passed.
skips() { # FILE...
  sed -n 's/^ *SKIPPED/SKIPPED/p' "$@" 2>/dev/null | sort -u
}

target() { # TARGET
  local group groups log=$LOGS/$1.log begun=$SECONDS status cpu
  mapfile -t groups < <(groups_of "$1")
  BEDPLATE_SKIPPED=$(readlink -f "$LOGS")/$1.skipped
  export BEDPLATE_SKIPPED
  rm -f "$BEDPLATE_SKIPPED"
  (
    for group in "${groups[@]}"; do echo "$BASHPID" >"$group/cgroup.procs"; done
    exec make --no-print-directory "$1"
  ) >"$log" 2>&1 </dev/null
  status=$?
  cpu=$(counted "${groups[@]}")
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

lane() { # TARGET...
  local one failed=0
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
  for one in "${lanes[@]}"; do
    read -ra words <<<"$one"
    lane "${words[@]}" &
    running+=($!)
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
# A check that needs something that no package has. It fails no run, and no run hides it.
GAPS=$(sed -n 's/^ *NOT CHECKED/NOT CHECKED/p' "$LOGS"/*.log 2>/dev/null | sort -u)
[ -z "$GAPS" ] || printf '%s\n' "$GAPS"
# The end of a long output is what a reader sees first.
for name in "${NAMES[@]}"; do
  read -r _ status _ 2>/dev/null <"$LOGS/$name.row" || continue
  [ "$status" != 0 ] || continue
  printf '\n==== failed assertions of %s ====\n' "$name"
  grep -a -A 4 "panicked at" "$LOGS/$name.log" | head -n 30
  printf '\n==== the last lines of %s ====\n' "$name"
  tail -n 30 "$LOGS/$name.log"
done
if [ "$FAILED" != 0 ]; then
  echo "make test: FAILED"
elif [ "$SKIPS" != 0 ]; then
  echo "make test: what was tried passed; $SKIPS skipped"
elif [ -n "$GAPS" ]; then
  echo "make test: all tests passed; see above for what was NOT CHECKED"
else
  echo "make test: all of it passed"
fi
exit "$FAILED"
