#!/usr/bin/env bash
# nodes.sh - machines made of namespaces that boot with Ignition configs, on a network of their own without an uplink.
#
#   nodes.sh deps                        install Debian's packages, and make what machines are made of (15 minutes, once)
#   nodes.sh up                          the network: 10.99.0.1 is its host, where port 8000 serves the mirror
#   nodes.sh boot NAME ADDRESS CONFIG    a machine's first boot: Ignition from this file, then its units; returns at once
#   nodes.sh crash NAME                  the machine loses its power
#   nodes.sh reboot NAME                 and gets it back: no Ignition this time
#   nodes.sh destroy NAME                the machine and its disk are gone
#   nodes.sh exec NAME COMMAND...        run a command on a machine
#   nodes.sh network COMMAND...          run a command on the network's host
#   nodes.sh down                        all of it is gone;  down-all: of every network
#
# A machine has namespaces of its own (mount, network, processes, host name, IPC) and a root folder laid over the tree of tree.sh.
# Before it is entered `ignition-apply` writes what the config says, as Ignition does before it hands over to a Fedora CoreOS; files
# are fetched over the machine's own network. Its first process is unit-runner, for systemd cannot be one here.
#
#   NODES_NAME   which network (default: nodes)     UNIT_RUNNER   the program (default: the one in target/debug)
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../debian.sh disable=SC1091
. "$HERE/../debian.sh"

NAME=${NODES_NAME:-nodes}
KUBERNETES=$BEDPLATE_CACHE/kubernetes
TREE=$KUBERNETES/tree MIRROR=$KUBERNETES/mirror
NODES=$KUBERNETES/nodes STATE=$KUBERNETES/nodes/$NAME
PREFIX=bedplate-$NAME                 # of network namespaces and control groups
HOST=10.99.0.1
UNIT_RUNNER=${UNIT_RUNNER:-$HERE/../../../target/debug/unit-runner}

alive() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }
machines() { find "$STATE" -mindepth 2 -maxdepth 2 -name address -printf '%h\n' 2>/dev/null | sed 's#.*/##' | sort; }
first_process() { # MACHINE: the machine's process 1, as seen from here
  local outside children
  alive "$STATE/$1/pid" || die "$1 is not running"
  outside=$(cat "$STATE/$1/pid")
  children=$(cat "/proc/$outside/task/$outside/children")
  [ -n "$children" ] || die "$1 has no process yet"
  echo "${children%% *}"
}
control_groups() { # MACHINE: its folders (version 1 has one for each controller)
  local controller
  if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    echo "/sys/fs/cgroup/$PREFIX-$1"
  else
    for controller in cpu cpuacct cpuset memory devices freezer blkio pids systemd; do
      [ ! -d "/sys/fs/cgroup/$controller" ] || echo "/sys/fs/cgroup/$controller/$PREFIX-$1"
    done
  fi
}

deps() {
  install_packages mmdebstrap ignition haproxy iproute2 iptables gcc libc6-dev binutils xz-utils patch python3 curl
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
  ip netns exec "$PREFIX" python3 -m http.server --bind "$HOST" --directory "$MIRROR" 8000 >"$STATE/mirror.log" 2>&1 </dev/null &
  disown
}

attach() { # MACHINE ADDRESS: its network
  local link tunable
  link=v$(printf '%s' "$1" | md5sum | cut -c1-10)
  ip netns add "$PREFIX-$1"
  ip -n "$PREFIX" link add "$link" type veth peer name eth0 netns "$PREFIX-$1"
  ip -n "$PREFIX" link set "$link" master br0 up
  ip -n "$PREFIX-$1" link set lo up
  ip -n "$PREFIX-$1" addr add "$2/24" dev eth0
  ip -n "$PREFIX-$1" link set eth0 up
  ip -n "$PREFIX-$1" route add default via "$HOST"
  # what the machine's sysctl.d says, as far as a network namespace has it
  for tunable in ipv4/ip_forward bridge/bridge-nf-call-iptables; do
    [ ! -e "/proc/sys/net/$tunable" ] || echo 1 | nsenter --net="/run/netns/$PREFIX-$1" tee "/proc/sys/net/$tunable" >/dev/null
  done
}

boot() { # MACHINE ADDRESS CONFIG
  local state=$STATE/$1
  [ ! -e "$state" ] || die "there is a machine $1 already"
  [ -x "$UNIT_RUNNER" ] || die "there is no $UNIT_RUNNER: cargo build -p unit-runner makes it"
  mkdir -p "$state"/{disk,work,root,containerd,kubelet,etcd,pods}
  cp "$3" "$state/config.ign"
  echo "$2" >"$state/address"
  power_on "$1"
}

power_on() { # MACHINE
  local state=$STATE/$1 folder
  attach "$1" "$(cat "$state/address")"
  while read -r folder; do
    mkdir -p "$folder"
    if [ -f "$folder/cpuset.cpus" ] && [ ! -f "$folder/cgroup.controllers" ]; then
      cat "${folder%/*}/cpuset.cpus" >"$folder/cpuset.cpus"
      cat "${folder%/*}/cpuset.mems" >"$folder/cpuset.mems"
      echo 1 >"$folder/cgroup.clone_children"
    fi
  done < <(control_groups "$1")
  # nsenter and not `ip netns exec`, which mounts a /sys without control groups
  NODES_NAME=$NAME UNIT_RUNNER=$UNIT_RUNNER nsenter --net="/run/netns/$PREFIX-$1" \
    unshare --mount --uts --ipc --pid --fork --kill-child "$HERE/nodes.sh" initramfs "$1" >>"$state/boot.log" 2>&1 </dev/null &
  echo $! >"$state/pid"
  disown
}

authorities() { # CONFIG: the certificates in ignition.security
  python3 -c 'import gzip, json, sys, urllib.request
tls = json.load(open(sys.argv[1]))["ignition"].get("security", {}).get("tls", {})
for authority in tls.get("certificateAuthorities", []):
    text = urllib.request.urlopen(authority["source"]).read()
    print((gzip.decompress(text) if authority.get("compression") == "gzip" else text).decode())' "$1"
}

# Inside the namespaces: the root is put together, written to by Ignition, entered.
initramfs() { # MACHINE
  local state=$STATE/$1 root=$STATE/$1/root tunable file
  mount --make-rprivate /
  mount -t overlay overlay -o "lowerdir=$TREE,upperdir=$state/disk,workdir=$state/work" "$root"
  # containerd cannot lay its overlays over an overlay; etcd and the kubelet are better off on the disk itself, too
  mkdir -p "$root"/var/lib/{containerd,kubelet,etcd} "$root/var/log/pods" "$root/old"
  mount --bind "$state/containerd" "$root/var/lib/containerd"
  mount --bind "$state/kubelet" "$root/var/lib/kubelet"
  mount --bind "$state/etcd" "$root/var/lib/etcd"
  mount --bind "$state/pods" "$root/var/log/pods"
  if [ ! -e "$state/ignited" ]; then
    # Ignition believes the authorities of its user data before it fetches; ignition-apply only later, so it is told
    authorities "$state/config.ign" >"$state/authorities.pem"
    SSL_CERT_FILE=$state/authorities.pem "$state/../ignition-apply" --root "$root" --ignore-unsupported "$state/config.ign" || die "Ignition failed"
    touch "$state/ignited"
  fi
  # what is the image's: it lacks a service that would name the machine, and the kubelet's control groups are below the machine's
  hostname "$(cat "$root/etc/hostname")"
  printf '%s' "$NAME/$1" | md5sum | cut -c1-32 >"$root/etc/machine-id"
  printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
  rm -f "$root/etc/resolv.conf"
  echo "nameserver $HOST" >"$root/etc/resolv.conf"
  mkdir -p "$root/etc/sysconfig"
  echo "KUBELET_EXTRA_ARGS=--cgroup-root=/$PREFIX-$1" >"$root/etc/sysconfig/kubelet"
  install -m 755 "$UNIT_RUNNER" "$root/usr/sbin/unit-runner"

  mount -t proc proc "$root/proc"
  mount -t sysfs sys "$root/sys"
  mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/run"
  mount -t tmpfs tmpfs "$root/tmp"
  # the kernel tunables that a kubelet writes are the whole host's: lend it files instead
  mkdir -p "$root/run/tunables"
  for tunable in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 \
    kernel/keys/root_maxbytes=25000000; do
    file=$root/run/tunables/$(printf '%s' "${tunable%=*}" | tr / .)
    echo "${tunable#*=}" >"$file"
    mount --bind "$file" "$root/proc/sys/${tunable%=*}"
  done
  cd "$root"
  pivot_root . old
  umount -l /old
  mount --make-rshared /
  exec chroot . /usr/bin/env -i /usr/sbin/unit-runner
}

enter() { # MACHINE COMMAND...
  local process
  process=$(first_process "$1")
  shift
  nsenter -t "$process" -m -u -i -n -p -r -w env -i TERM=dumb HOME=/root KUBECONFIG=/etc/kubernetes/admin.conf \
    PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

crash() { # MACHINE
  local state=$STATE/$1 process
  # unshare takes no notice of TERM; its end takes all of the machine with it
  if alive "$state/pid"; then
    process=$(cat "$state/pid")
    kill -9 "$process"
    for _ in $(seq 100); do [ -d "/proc/$process" ] && sleep 0.1; done
  fi
  for _ in $(seq 100); do
    [ -n "$(ip netns pids "$PREFIX-$1" 2>/dev/null)" ] || break
    sleep 0.1
  done
  rm -f "$state/pid"
  ip netns del "$PREFIX-$1" 2>/dev/null || true
}

destroy() { # MACHINE
  local folder
  crash "$1"
  while read -r folder; do
    # containerd makes more of them, under "unified" for one
    for folder in "$folder" "/sys/fs/cgroup/unified/$PREFIX-$1"; do
      [ ! -d "$folder" ] || find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
  done < <(control_groups "$1")
  rm -rf "${STATE:?}/$1"
}

down() {
  local machine process
  for machine in $(machines); do destroy "$machine"; done
  # the mirror, and what else was started beside the machines
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

# one program, its work chosen by the name it is called by
lend_ignition() { ln -sf /usr/lib/dracut/modules.d/30ignition/ignition "$STATE/ignition-apply"; }

is_root || die "needs root"
case ${1:-} in
deps) deps ;;
up) up && lend_ignition ;;
boot) [ $# = 4 ] || die "boot NAME ADDRESS CONFIG"; boot "$2" "$3" "$4" ;;
crash) crash "$2" ;;
reboot) crash "$2" && power_on "$2" ;;
destroy) destroy "$2" ;;
exec) shift; [ $# -ge 2 ] || die "exec NAME COMMAND..."; enter "$@" ;;
network) shift; ip netns exec "$PREFIX" "$@" ;;
down) down ;;
down-all) down_all ;;
initramfs) initramfs "$2" ;;
*)
  sed -n '2,21p' "$0" | sed 's/^# \{0,1\}//'
  exit 2
  ;;
esac
