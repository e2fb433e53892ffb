#!/usr/bin/env bash
# machine.sh - one machine made of namespaces, in a folder, with a network namespace that is there already.
#
#   machine.sh prepare FOLDER          makes what a machine's disk is made of
#   machine.sh start FOLDER            power: at the first time Ignition, from FOLDER/config.ign; then its units. Returns at once
#   machine.sh crash FOLDER            loses its power
#   machine.sh destroy FOLDER          crash, and its disk is gone
#   machine.sh exec FOLDER COMMAND...  runs a command on it
#
# The folder says what the machine is: config.ign; namespace, the name of its network namespace, which its control groups have too;
# resolv.conf; hostname, which is what the cloud says of it, for an image whose config says nothing.
#
# A machine has namespaces of its own (mount, network, processes, host name, IPC) and a root folder laid over the tree of tree.sh.
# Before it is entered `ignition-apply` writes what the config says, as Ignition does before it hands over to a Fedora CoreOS; files
# are fetched over the machine's own network. Its first process is unit-runner, for systemd cannot be one here.
#
#   UNIT_RUNNER  the program (default: the one in target/debug)
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../debian.sh disable=SC1091
. "$HERE/../debian.sh"

TREE=$BEDPLATE_CACHE/kubernetes/tree
UNIT_RUNNER=${UNIT_RUNNER:-$HERE/../../../target/debug/unit-runner}
IGNITION=/usr/lib/dracut/modules.d/30ignition/ignition # its work is chosen by the name it is called by

alive() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }
first_process() { # the machine's process 1, as seen from here
  local outside children
  alive "$FOLDER/pid" || die "$MACHINE is not running"
  outside=$(cat "$FOLDER/pid")
  children=$(cat "/proc/$outside/task/$outside/children")
  [ -n "$children" ] || die "$MACHINE has no process yet"
  echo "${children%% *}"
}
control_groups() { # its folders (version 1 has one for each controller)
  local controller
  if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    echo "/sys/fs/cgroup/$MACHINE"
  else
    for controller in cpu cpuacct cpuset memory devices freezer blkio pids systemd; do
      [ ! -d "/sys/fs/cgroup/$controller" ] || echo "/sys/fs/cgroup/$controller/$MACHINE"
    done
  fi
}

prepare() {
  [ -x "$UNIT_RUNNER" ] || die "there is no $UNIT_RUNNER: cargo build -p unit-runner makes it"
  [ -f "$TREE/.complete" ] || die "there is no tree: tree.sh makes it"
  mkdir -p "$FOLDER"/{disk,work,root,containerd,kubelet,etcd,pods}
}

start() {
  local folder tunable
  # what the machine's sysctl.d says, as far as a network namespace has it
  for tunable in ipv4/ip_forward bridge/bridge-nf-call-iptables; do
    [ ! -e "/proc/sys/net/$tunable" ] || echo 1 | nsenter --net="/run/netns/$MACHINE" tee "/proc/sys/net/$tunable" >/dev/null
  done
  while read -r folder; do
    mkdir -p "$folder"
    if [ -f "$folder/cpuset.cpus" ] && [ ! -f "$folder/cgroup.controllers" ]; then
      cat "${folder%/*}/cpuset.cpus" >"$folder/cpuset.cpus"
      cat "${folder%/*}/cpuset.mems" >"$folder/cpuset.mems"
      echo 1 >"$folder/cgroup.clone_children"
    fi
  done < <(control_groups)
  # nsenter and not `ip netns exec`, which mounts a /sys without control groups; a session of its own, for it outlives who started it
  (
    keep_nothing_open
    UNIT_RUNNER=$UNIT_RUNNER exec setsid nsenter --net="/run/netns/$MACHINE" \
      unshare --mount --uts --ipc --pid --fork --kill-child "$HERE/machine.sh" initramfs "$FOLDER"
  ) >>"$FOLDER/boot.log" 2>&1 </dev/null &
  echo $! >"$FOLDER/pid"
  disown
}

authorities() { # the certificates in ignition.security
  python3 -c 'import gzip, json, sys, urllib.request
tls = json.load(open(sys.argv[1]))["ignition"].get("security", {}).get("tls", {})
for authority in tls.get("certificateAuthorities", []):
    text = urllib.request.urlopen(authority["source"]).read()
    print((gzip.decompress(text) if authority.get("compression") == "gzip" else text).decode())' "$FOLDER/config.ign"
}

# Inside the namespaces: the root is put together, written to by Ignition, entered.
initramfs() {
  local root=$FOLDER/root tunable file
  mount --make-rprivate /
  mount -t overlay overlay -o "lowerdir=$TREE,upperdir=$FOLDER/disk,workdir=$FOLDER/work" "$root"
  # containerd cannot lay its overlays over an overlay; etcd and the kubelet are better off on the disk itself, too
  mkdir -p "$root"/var/lib/{containerd,kubelet,etcd} "$root/var/log/pods" "$root/old"
  mount --bind "$FOLDER/containerd" "$root/var/lib/containerd"
  mount --bind "$FOLDER/kubelet" "$root/var/lib/kubelet"
  mount --bind "$FOLDER/etcd" "$root/var/lib/etcd"
  mount --bind "$FOLDER/pods" "$root/var/log/pods"
  if [ ! -e "$FOLDER/ignited" ]; then
    # Ignition believes the authorities of its user data before it fetches; ignition-apply only later, so it is told
    authorities >"$FOLDER/authorities.pem"
    SSL_CERT_FILE=$FOLDER/authorities.pem bash -c 'exec -a ignition-apply "$@"' _ "$IGNITION" --root "$root" --ignore-unsupported \
      "$FOLDER/config.ign" || die "Ignition failed"
    touch "$FOLDER/ignited"
  fi
  # what is the image's: it lacks a service that would name the machine; the kubelet's control groups are below the machine's, and the
  # disk is the host's: how full that is, is no reason to remove images, which nothing here could bring again, nor pods
  [ -s "$FOLDER/disk/etc/hostname" ] || cp "$FOLDER/hostname" "$root/etc/hostname"
  hostname "$(cat "$root/etc/hostname")"
  printf '%s' "$MACHINE" | md5sum | cut -c1-32 >"$root/etc/machine-id"
  printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
  rm -f "$root/etc/resolv.conf"
  cp "$FOLDER/resolv.conf" "$root/etc/resolv.conf"
  mkdir -p "$root/etc/sysconfig"
  echo "KUBELET_EXTRA_ARGS=--cgroup-root=/$MACHINE --image-gc-high-threshold=100 --eviction-hard=memory.available<100Mi" \
    >"$root/etc/sysconfig/kubelet"
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

enter() { # COMMAND...
  local process
  process=$(first_process)
  nsenter -t "$process" -m -u -i -n -p -r -w env -i TERM=dumb HOME=/root KUBECONFIG=/etc/kubernetes/admin.conf \
    PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

crash() {
  local process
  # unshare takes no notice of TERM; its end takes all of the machine with it
  if alive "$FOLDER/pid"; then
    process=$(cat "$FOLDER/pid")
    kill -9 "$process"
    for _ in $(seq 100); do [ -d "/proc/$process" ] && sleep 0.1; done
  fi
  for _ in $(seq 100); do
    [ -n "$(ip netns pids "$MACHINE" 2>/dev/null)" ] || break
    sleep 0.1
  done
  rm -f "$FOLDER/pid"
}

destroy() {
  local folder
  crash
  while read -r folder; do
    # containerd makes more of them, under "unified" for one
    for folder in "$folder" "/sys/fs/cgroup/unified/$MACHINE"; do
      [ ! -d "$folder" ] || find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
  done < <(control_groups)
  rm -rf "$FOLDER"
}

is_root || die "needs root"
if [ $# -lt 2 ] || [ ! -f "$2/namespace" ]; then
  sed -n '2,/^set -/p' "$0" | sed '$d; s/^# \{0,1\}//'
  exit 2
fi
FOLDER=$(readlink -f "$2") MACHINE=$(cat "$2/namespace")
case $1 in
prepare | start | crash | destroy | initramfs) "$1" ;;
exec) enter "${@:3}" ;;
*) die "no such verb: $1" ;;
esac
