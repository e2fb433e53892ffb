# shellcheck shell=bash
# processes.sh - pid files that never mean another process. Sourced, not run.
#
# The kernel gives the number of an ended process to a later process, which may be a test. A pid file therefore holds `PID START`, where
# START is the start time of the process in clock ticks after boot (field 22 of /proc/PID/stat, see proc(5)). If the process with this
# number has another start time, the recorded process has ended. machines/servers.py reads these files too.

start_time() { # PID: prints it, and fails if there is no such process
  local text='' fields
  { read -rd '' text <"/proc/$1/stat" || true; } 2>/dev/null
  # the second field is the program's name in parentheses, which may itself contain spaces and parentheses
  read -ra fields <<<"${text##*)}"
  [ ${#fields[@]} -gt 19 ] && echo "${fields[22 - 3]}"
}

record_process() { # PID FILE
  echo "$1 $(start_time "$1" || true)" >"$2"
}
recorded_process() { # FILE: prints the pid, and fails if the process has ended
  local pid='' start=''
  { read -r pid start <"$1" || true; } 2>/dev/null
  [ -n "$start" ] && [ "$(start_time "$pid")" = "$start" ] && echo "$pid"
}
is_alive() { recorded_process "$1" >/dev/null; } # FILE

# Both functions succeed without a signal if the process has ended. A group gets no signal after its leader has ended, because a later
# process with the same number may have made another group.
signal_process() { # SIGNAL FILE
  local pid
  ! pid=$(recorded_process "$2") || kill "-$1" "$pid" 2>/dev/null || true
}
signal_group() { # SIGNAL FILE: the group that the process leads
  local pid
  ! pid=$(recorded_process "$2") || kill "-$1" -- "-$pid" 2>/dev/null || true
}
