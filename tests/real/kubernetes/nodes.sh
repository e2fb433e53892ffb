#!/usr/bin/env bash
# nodes.sh - machines made of namespaces that boot with Ignition configs, on a separate network without an uplink.
#
#   nodes.sh deps                        install Debian's packages, and make the tree of the machines (three minutes, once)
#   nodes.sh up                          start the network: 10.99.0.1 is its host, where port 8000 serves the mirror
#   nodes.sh boot NAME ADDRESS CONFIG    boot a machine for the first time: Ignition from this file, then its units; returns at once
#   nodes.sh crash NAME                  cut the power of a machine
#   nodes.sh reboot NAME                 cut the power of a machine and switch it on again, without Ignition
#   nodes.sh destroy NAME                remove a machine and its disk
#   nodes.sh exec NAME COMMAND...        run a command on a machine
#   nodes.sh network COMMAND...          run a command on the network's host
#   nodes.sh down                        remove the network and its machines;  down-all: all networks
#
# ../machines/machine.sh describes a machine.
#
#   NODES_NAME   name of the network (default: nodes)     UNIT_RUNNER   the program (default: the one in target/debug)
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../debian.sh disable=SC1091
. "$HERE/../debian.sh"

NAME=${NODES_NAME:-nodes}
KUBERNETES=$BEDPLATE_CACHE/kubernetes
MIRROR=$KUBERNETES/mirror
NODES=$KUBERNETES/nodes STATE=$KUBERNETES/nodes/$NAME
PREFIX=bedplate-$NAME                 # of network namespaces and control groups
HOST=10.99.0.1
UNIT_RUNNER=${UNIT_RUNNER:-$HERE/../../../target/debug/unit-runner}

machines() { find "$STATE" -mindepth 2 -maxdepth 2 -name address -printf '%h\n' 2>/dev/null | sed 's#.*/##' | sort; }
machine() { # VERB MACHINE [COMMAND...]
  [ -d "$STATE/$2" ] || die "there is no machine $2"
  UNIT_RUNNER=$UNIT_RUNNER "$HERE/../machines/machine.sh" "$1" "$STATE/$2" "${@:3}"
}

deps() {
  install_packages mmdebstrap ignition haproxy iproute2 iptables gcc libc6-dev binutils xz-utils patch python3 curl openssl
  "$HERE/mirror.sh" >/dev/null
}

up() {
  [ -f "$MIRROR/.complete" ] || die "there is no mirror: nodes.sh deps makes it"
  [ ! -e "$STATE" ] || die "$NAME is up already: nodes.sh down first"
  mkdir -p "$STATE"
  ip netns add "$PREFIX"
  ip -n "$PREFIX" link set lo up
  ip -n "$PREFIX" link add br0 type bridge
  ip -n "$PREFIX" addr add "$HOST/24" dev br0
  ip -n "$PREFIX" link set br0 up
  (
    keep_nothing_open
    exec ip netns exec "$PREFIX" python3 -m http.server --bind "$HOST" --directory "$MIRROR" 8000
  ) >"$STATE/mirror.log" 2>&1 </dev/null &
  disown
}

# Prints the name of a machine's link on the network's host.
link_of() { printf 'v%s' "$(printf '%s' "$1" | md5sum | cut -c1-10)"; } # MACHINE

attach() { # MACHINE ADDRESS: connects the machine to the network
  local link
  link=$(link_of "$1")
  ip netns add "$PREFIX-$1"
  ip -n "$PREFIX" link add "$link" type veth peer name eth0 netns "$PREFIX-$1"
  ip -n "$PREFIX" link set "$link" master br0 up
  ip -n "$PREFIX-$1" link set lo up
  ip -n "$PREFIX-$1" addr add "$2/24" dev eth0
  ip -n "$PREFIX-$1" link set eth0 up
  ip -n "$PREFIX-$1" route add default via "$HOST"
}

boot() { # MACHINE ADDRESS CONFIG
  local state=$STATE/$1
  [ ! -e "$state" ] || die "there is a machine $1 already"
  mkdir "$state"
  cp "$3" "$state/config.ign"
  echo "$2" >"$state/address"
  echo "$PREFIX-$1" >"$state/namespace"
  echo "$1" >"$state/hostname"
  echo "nameserver $HOST" >"$state/resolv.conf"
  machine prepare "$1"
  power_on "$1"
}

power_on() { # MACHINE
  attach "$1" "$(cat "$STATE/$1/address")"
  machine start "$1"
}

# Disconnects a machine. The kernel removes the links of a deleted namespace at some later time, and the machine's next link has the same name.
detach() { # MACHINE
  ip -n "$PREFIX" link del "$(link_of "$1")" 2>/dev/null || true
  ip netns del "$PREFIX-$1" 2>/dev/null || true
}

crash() { # MACHINE
  machine crash "$1"
  detach "$1"
}

destroy() { # MACHINE
  machine destroy "$1"
  detach "$1"
}

down() {
  local machine process
  for machine in $(machines); do destroy "$machine"; done
  # the mirror and other processes on the network's host
  for process in $(ip netns pids "$PREFIX" 2>/dev/null); do kill "$process" 2>/dev/null || true; done
  ip netns del "$PREFIX" 2>/dev/null || true
  rm -rf "$STATE"
}

down_all() {
  local folder
  for folder in "$NODES"/*/; do
    [ -d "$folder" ] || continue
    NODES_NAME=$(basename "$folder") "$HERE/nodes.sh" down
  done
}

is_root || die "needs root"
case ${1:-} in
deps) deps ;;
up) up ;;
boot) [ $# = 4 ] || die "boot NAME ADDRESS CONFIG"; boot "$2" "$3" "$4" ;;
crash) crash "$2" ;;
reboot) crash "$2" && power_on "$2" ;;
destroy) destroy "$2" ;;
exec) [ $# -ge 3 ] || die "exec NAME COMMAND..."; machine "$@" ;;
network) shift; ip netns exec "$PREFIX" "$@" ;;
down) down ;;
down-all) down_all ;;
*)
  sed -n '2,/^set -/p' "$0" | sed '$d; s/^# \{0,1\}//'
  exit 2
  ;;
esac
