#!/usr/bin/env bash
# haproxy.sh run FOLDER PROXY...    Debian's haproxy before several servers, in the foreground; its files are in FOLDER
# haproxy.sh config FOLDER PROXY... prints its configuration, which is also the example for a site
# haproxy.sh state FOLDER SERVER drain|ready   sends a server no new requests, or requests again
# haproxy.sh servers FOLDER         prints each server with its state: `http-127.0.0.1:6385 127.0.0.1:7001 UP`
#
# A PROXY is KIND=ADDRESS=SERVER[,SERVER...] with addresses HOST:PORT. The kinds:
#
#   http      an API, the provisioning listener or the console. A request goes to another server if the connection fails, or if a server ends
#             before it answers a read. The client's address is in X-Forwarded-For. WebSockets pass.
#   tcp       TLS that the servers end themselves: clusterd's listener for members.
#   http+proxy, tcp+proxy  the same with the PROXY protocol, which tells the client's address at the beginning of each connection.
#   postgres  PostgreSQL with a standby: the server that is no standby, as it says itself.
#
# It needs no root. As root, a missing haproxy is installed.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=debian.sh disable=SC1091
. "$HERE/debian.sh"

# haproxy is in sbin, which the PATH of an ordinary user may lack
PATH=$PATH:/usr/sbin

# A server that died is found by the first connection that it refuses. One that is stopped but not gone accepts connections and answers
# nothing, so its sessions end when it fails the checks; one that finishes its last requests has two seconds for them.
head_of_configuration() { # FOLDER
  cat <<C
global
  maxconn 4096
  stats socket $1/haproxy.sock mode 600 level admin
defaults
  timeout connect 2s
  timeout check 2s
  timeout client 1h
  timeout server 1m
  timeout tunnel 1h
  timeout http-request 10s
  timeout http-keep-alive 1h
  option redispatch 1
  retries 4
  default-server check inter 1s fall 3 rise 1 on-marked-down shutdown-sessions
C
}

# A server that ended before it answered may have done what was asked, so only reads are sent to another one.
http_rules() {
  cat <<'C'
  mode http
  balance roundrobin
  option forwardfor
  http-request set-header X-Forwarded-Proto http
  http-request del-header X-Forwarded-Host
  http-request del-header X-Forwarded-Prefix
  option httpchk GET /
  http-check expect status 200-499
  retry-on conn-failure empty-response
  http-request disable-l7-retry unless METH_GET
C
}

tcp_rules() {
  cat <<'C'
  mode tcp
  balance roundrobin
C
}

# The messages of PostgreSQL's protocol (55.7): a start as postgres, ReadyForQuery, `select pg_is_in_recovery()`, an answer of 75 bytes with
# the row `f`. A session may be idle for long.
postgres_rules() {
  cat <<'C'
  mode tcp
  option tcp-check
  tcp-check connect
  tcp-check send-binary 00000029000300007573657200706f73746772657300646174616261736500706f7374677265730000
  tcp-check expect binary 5a0000000549
  tcp-check send-binary 510000001f73656c6563742070675f69735f696e5f7265636f76657279282900
  tcp-check expect min-recv 75 binary 440000000b00010000000166
  timeout server 1h
  default-server inter 500ms fall 1
C
}

proxy() { # KIND ADDRESS SERVERS
  local server servers number=0 more=''
  printf 'listen %s-%s\n  bind %s\n' "${1%+proxy}" "$2" "$2"
  case $1 in
    http | tcp | postgres) "$1_rules" ;;
    http+proxy | tcp+proxy) "${1%+proxy}_rules" && more=' send-proxy-v2' ;;
    *) die "$1 is no kind of proxy: http, tcp or postgres" ;;
  esac
  IFS=, read -ra servers <<<"$3"
  for server in "${servers[@]}"; do
    number=$((number + 1))
    printf '  server %d %s%s\n' "$number" "$server" "$more"
  done
}

config() { # FOLDER PROXY...
  local proxy kind address servers
  head_of_configuration "$1"
  for proxy in "${@:2}"; do
    IFS='=' read -r kind address servers <<<"$proxy"
    [ -n "$servers" ] || die "$proxy is no proxy: KIND=ADDRESS=SERVER[,SERVER...]"
    proxy "$kind" "$address" "$servers"
  done
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
    sed -n '2,15p' "$0" | sed 's/^# \{0,1\}//'
    exit 2
    ;;
esac
