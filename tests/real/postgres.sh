#!/usr/bin/env bash
# postgres.sh COMMAND... - runs a command with a temporary PostgreSQL, whose URL is in BEDPLATE_TEST_POSTGRES.
#
# postgres.sh --up FOLDER PORT DATABASE...      starts a server at 127.0.0.1:PORT, with these databases
# postgres.sh --stop FOLDER | --start FOLDER    stops the server, and starts it again
# postgres.sh --freeze FOLDER | --thaw FOLDER   stops its processes where they are (SIGSTOP), and lets them continue
# postgres.sh --kill FOLDER                     kills its processes (SIGKILL), as a host does that loses its power
# postgres.sh --down FOLDER                     ends the server, even a frozen one
# postgres.sh --standby FOLDER PORT PRIMARY     starts a standby of the server in the folder PRIMARY, for which each commit there waits, and
#                                               makes the role haproxy, by which haproxy asks which of them writes
# postgres.sh --promote FOLDER                  makes a standby a server that writes
#
# The server is Debian's, with its data and its socket in a temporary folder. It stops when the command ends. As root, a missing server is
# installed. Without a server, the command runs anyway, and the script says so.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=debian.sh disable=SC1091
. "$HERE/debian.sh"

newest_server() { find /usr/lib/postgresql -maxdepth 3 -name initdb -path '*/bin/*' 2>/dev/null | sort -V | tail -n 1 | xargs -r dirname; }
install_server() { # installs only the server, without Debian's default cluster and service
  install_packages postgresql-common
  sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
  install_packages postgresql
}
# the server refuses to run as root
as_server() { if is_root; then setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; else "$@"; fi; }

make_data() { # FOLDER
  ! is_root || chown postgres: "$1"
  chmod 755 "$1"
  (cd "$1" && as_server "$BIN/initdb" -D "$1/data" -U postgres -A trust -E UTF8 --no-sync >"$1/initdb.log" 2>&1) || {
    cat "$1/initdb.log" >&2
    die "initdb failed"
  }
}
# a crash may lose everything, because no data is kept
start_server() { # FOLDER OPTIONS
  (cd "$1" && as_server "$BIN/pg_ctl" -D "$1/data" -w -l "$1/data/log" -o "-c unix_socket_directories=$1 -c fsync=off \
    -c synchronous_commit=off -c full_page_writes=off -c max_connections=300 $2" start >/dev/null) || {
    cat "$1/data/log" >&2
    die "PostgreSQL did not start"
  }
}
# A killed server leaves its pid file, and the kernel reuses process ids, so the command line has to name the folder too.
first_process() { # FOLDER: prints the pid of the server's first process, and fails if the server does not run
  local pid
  pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null || true)
  grep -qzxF -- "$(realpath -s "$1/data")" "/proc/$pid/cmdline" 2>/dev/null || { say "no server runs in $1"; return 1; }
  echo "$pid"
}
stop_server() { first_process "$1" >/dev/null && as_server "$BIN/pg_ctl" -D "$1/data" -m "$2" -w stop >/dev/null; } # FOLDER MODE
# the first process before its children: it starts no others once it is stopped
signal_server() { # FOLDER SIGNAL
  local first
  first=$(first_process "$1") || return
  kill "-$2" "$first"
  # some may have ended meanwhile
  # shellcheck disable=SC2046 # several words
  kill "-$2" $(cat "/proc/$first/task/$first/children") 2>/dev/null || true
}

# Nothing of it may answer anyone after its first process is gone.
kill_server() { # FOLDER
  local first children
  first=$(first_process "$1") || return
  kill -STOP "$first"
  children=$(cat "/proc/$first/task/$first/children")
  # shellcheck disable=SC2086 # several words
  kill -KILL $children "$first"
}

say_sql() { # FOLDER SQL: prints the answer
  as_server "$BIN/psql" -h "$1" -p "$(cat "$1/port")" -U postgres -qtAc "$2"
}
# The standby is synchronous from the moment when it has everything: a commit is answered once the standby has it too.
standby_up() { # FOLDER PORT PRIMARY
  local tries=150
  ! is_root || chown postgres: "$1"
  chmod 755 "$1"
  say_sql "$3" "CREATE ROLE haproxy LOGIN"
  (cd "$1" && as_server "$BIN/pg_basebackup" -h "$3" -p "$(cat "$3/port")" -U postgres -D "$1/data" -c fast --no-sync -R)
  echo "$2" >"$1/port"
  printf '%s\n' "-c listen_addresses=127.0.0.1 -c port=$2 -c synchronous_commit=on" >"$1/options"
  start_server "$1" "$(cat "$1/options")"
  say_sql "$3" "ALTER SYSTEM SET synchronous_standby_names = '*'"
  say_sql "$3" "SELECT pg_reload_conf()" >/dev/null
  until [ "$(say_sql "$3" "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")" = 1 ]; do
    ((tries--)) || die "the standby does not follow the server in $3"
    sleep 0.1
  done
}

BIN=$(newest_server)
if [ -z "$BIN" ] && is_root; then
  install_server
  BIN=$(newest_server)
fi

case ${1:-} in
  --up)
    [ -n "$BIN" ] || die "no PostgreSQL here and no root to install it"
    folder=$2
    make_data "$folder"
    echo "$3" >"$folder/port"
    # with a standby, a commit waits for it
    printf '%s\n' "-c listen_addresses=127.0.0.1 -c port=$3 -c synchronous_commit=on" >"$folder/options"
    start_server "$folder" "$(cat "$folder/options")"
    for database in "${@:4}"; do as_server "$BIN/createdb" -h "$folder" -p "$3" -U postgres "$database"; done
    exit
    ;;
  --start) start_server "$2" "$(cat "$2/options")"; exit ;;
  --stop) stop_server "$2" fast; exit ;;
  --freeze) signal_server "$2" STOP; exit ;;
  --thaw) signal_server "$2" CONT; exit ;;
  --kill) kill_server "$2"; exit ;;
  --standby) standby_up "$2" "$3" "$4"; exit ;;
  --promote) [ "$(say_sql "$2" "SELECT pg_promote()")" = t ] || die "the standby in $2 does not write"; exit ;;
  --down)
    signal_server "$2" CONT 2>/dev/null || true
    stop_server "$2" immediate 2>/dev/null || true
    exit
    ;;
esac

if [ -z "$BIN" ]; then
  say "SKIPPED: no PostgreSQL here and no root to install it; the store is tried on SQLite alone"
  exec "$@"
fi

DATA=$(mktemp -d)
finish() {
  stop_server "$DATA" immediate 2>/dev/null || true
  rm -rf "$DATA"
}
trap finish EXIT
make_data "$DATA"
start_server "$DATA" "-c listen_addresses="
export BEDPLATE_TEST_POSTGRES="postgres://postgres@localhost/postgres?host=$DATA"
"$@"
