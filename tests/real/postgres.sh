#!/usr/bin/env bash
# postgres.sh COMMAND... - runs a command with a temporary PostgreSQL, whose URL is in BEDPLATE_TEST_POSTGRES.
#
# postgres.sh --up FOLDER PORT DATABASE...      starts a server at 127.0.0.1:PORT, with these databases
# postgres.sh --stop FOLDER | --start FOLDER    stops the server, and starts it again
# postgres.sh --freeze FOLDER | --thaw FOLDER   stops its processes where they are (SIGSTOP), and lets them continue
# postgres.sh --down FOLDER                     ends the server, even a frozen one
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
    printf '%s\n' "-c listen_addresses=127.0.0.1 -c port=$3" >"$folder/options"
    start_server "$folder" "$(cat "$folder/options")"
    for database in "${@:4}"; do as_server "$BIN/createdb" -h "$folder" -p "$3" -U postgres "$database"; done
    exit
    ;;
  --start) start_server "$2" "$(cat "$2/options")"; exit ;;
  --stop) stop_server "$2" fast; exit ;;
  --freeze) signal_server "$2" STOP; exit ;;
  --thaw) signal_server "$2" CONT; exit ;;
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
