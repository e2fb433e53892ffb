#!/usr/bin/env bash
# postgres.sh COMMAND... - runs a command with a temporary PostgreSQL, whose URL is in BEDPLATE_TEST_POSTGRES.
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

BIN=$(newest_server)
if [ -z "$BIN" ] && is_root; then
  install_server
  BIN=$(newest_server)
fi
if [ -z "$BIN" ]; then
  say "SKIPPED: no PostgreSQL here and no root to install it; the store is tried on SQLite alone"
  exec "$@"
fi

DATA=$(mktemp -d)
finish() {
  as_server "$BIN/pg_ctl" -D "$DATA/data" -m immediate -w stop >/dev/null 2>&1 || true
  rm -rf "$DATA"
}
trap finish EXIT
! is_root || chown postgres: "$DATA"
chmod 755 "$DATA"
cd "$DATA"
as_server "$BIN/initdb" -D "$DATA/data" -U postgres -A trust -E UTF8 --no-sync >"$DATA/initdb.log" 2>&1 || {
  cat "$DATA/initdb.log" >&2
  die "initdb failed"
}
# a crash may lose everything, because no data is kept
as_server "$BIN/pg_ctl" -D "$DATA/data" -w -l "$DATA/data/log" -o "-c listen_addresses= -c unix_socket_directories=$DATA -c fsync=off \
  -c synchronous_commit=off -c full_page_writes=off -c max_connections=300" start >/dev/null || {
  cat "$DATA/data/log" >&2
  die "PostgreSQL did not start"
}
cd "$OLDPWD"
export BEDPLATE_TEST_POSTGRES="postgres://postgres@localhost/postgres?host=$DATA"
"$@"
