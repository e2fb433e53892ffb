#!/usr/bin/env bash
# haproxy.sh run FOLDER PROXY...    Debian's haproxy before several servers, in the foreground; its files are in FOLDER
# haproxy.sh config FOLDER PROXY... prints its configuration
# haproxy.sh state FOLDER SERVER drain|ready   sends a server no new requests, or requests again
# haproxy.sh servers FOLDER         prints each server with its state: `baremetal-127.0.0.1:6385 127.0.0.1:7001 UP`
#
# A PROXY is SECTION=ADDRESS=SERVER[,SERVER...] with addresses HOST:PORT. SECTION is a section of deploy/haproxy/haproxy.cfg, which is run
# with these addresses, and without TLS of its own.
#
# It needs no root. As root, a missing haproxy is installed.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=debian.sh disable=SC1091
. "$HERE/debian.sh"

# haproxy is in sbin, which the PATH of an ordinary user may lack
PATH=$PATH:/usr/sbin

SITE=$HERE/../../deploy/haproxy/haproxy.cfg

config() { # FOLDER PROXY...
  local proxy section address servers
  printf 'global\n  maxconn 4096\n  stats socket %s/haproxy.sock mode 600 level admin\n' "$1"
  awk '/^[a-z]/ { inside = $1 == "defaults" } inside && !/^#/' "$SITE"
  for proxy in "${@:2}"; do
    IFS='=' read -r section address servers <<<"$proxy"
    [ -n "$servers" ] || die "$proxy is no proxy: SECTION=ADDRESS=SERVER[,SERVER...]"
    listen "$section" "$address" "$servers" || die "$SITE has no section listen $section"
  done
}

# Each server gets the words of the first server of the section, up to those of TLS.
listen() { # SECTION ADDRESS SERVERS: fails if there is no such section
  awk -v section="$1" -v address="$2" -v servers="$3" '
    /^[a-z]/ {
      inside = $1 == "listen" && $2 == section
      if (inside) { found = 1; print "listen " section "-" address; next }
    }
    !inside || /^#/ { next }
    $1 == "bind" { print "  bind " address; next }
    $1 != "server" { print; next }
    !seen++ {
      words = ""
      for (field = 4; field <= NF && $field != "ssl"; field++) words = words " " $field
      count = split(servers, each, ",")
      for (number = 1; number <= count; number++) print "  server " number " " each[number] words
    }
    END { exit !found }
  ' "$SITE"
}

run() { # FOLDER PROXY...
  command -v haproxy >/dev/null || install_packages haproxy
  config "$@" >"$1/haproxy.cfg"
  exec haproxy -db -q -f "$1/haproxy.cfg"
}

# The fields of haproxy's `show servers state`, version 1 (management guide, 9.3).
servers() { # FOLDER
  python3 - "$1/haproxy.sock" <<'P'
import socket, sys

with socket.socket(socket.AF_UNIX) as admin:
    admin.connect(sys.argv[1])
    admin.sendall(b"show servers state\n")
    for line in admin.makefile().read().splitlines()[2:]:
        field = line.split()
        if field:
            print(field[1], f"{field[4]}:{field[18]}", "UP" if field[5] == "2" else "DOWN")
P
}

# A server that is drained ends the requests that it has.
state() { # FOLDER SERVER drain|ready
  python3 - "$1/haproxy.sock" "$2" "$3" <<'P'
import socket, sys


def ask(line):
    with socket.socket(socket.AF_UNIX) as admin:
        admin.connect(sys.argv[1])
        admin.sendall(line.encode() + b"\n")
        return admin.makefile().read()


for line in ask("show servers state").splitlines()[2:]:
    field = line.split()
    if field and f"{field[4]}:{field[18]}" == sys.argv[2]:
        sys.exit(ask(f"set server {field[1]}/{field[3]} state {sys.argv[3]}").strip() or 0)
sys.exit(f"there is no server {sys.argv[2]}")
P
}

case ${1:-} in
  run | config | servers | state) [ $# -ge 2 ] || die "$1 needs a folder"; "$@" ;;
  *)
    sed -n '2,10p' "$0" | sed 's/^# \{0,1\}//'
    exit 2
    ;;
esac
