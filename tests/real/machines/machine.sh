#!/usr/bin/env bash
# machine.sh - one machine made of namespaces, in a folder, with an existing network namespace.
#
#   machine.sh prepare FOLDER          make the tree of the machine's disk
#   machine.sh start FOLDER            power on: Ignition from FOLDER/config.ign at the first start, then the units; returns at once
#   machine.sh crash FOLDER            cut the power
#   machine.sh destroy FOLDER          crash and remove the disk
#   machine.sh exec FOLDER COMMAND...  run a command on the machine
#
# Files in the folder describe the machine: config.ign; namespace, the name of its network namespace and of its control groups;
# resolv.conf; hostname, the name that the cloud gives to an image whose config sets no name.
#
# A machine has its own namespaces (mount, network, processes, host name, IPC) and a root folder laid over the tree of tree.sh.
# Before the machine starts, `ignition-apply` writes the files of the config, as Ignition does before it starts a Fedora CoreOS; it fetches
# files over the machine's own network. The first process is unit-runner, because systemd cannot run as first process here.
#
#   UNIT_RUNNER  the program (default: the one in target/debug)
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../debian.sh disable=SC1091
. "$HERE/../debian.sh"
# shellcheck source-path=SCRIPTDIR source=../processes.sh disable=SC1091
. "$HERE/../processes.sh"

TREE=$BEDPLATE_CACHE/kubernetes/tree
UNIT_RUNNER=${UNIT_RUNNER:-$HERE/../../../target/debug/unit-runner}
IGNITION=/usr/lib/dracut/modules.d/30ignition/ignition # the program's function depends on the name it is called by

first_process() { # prints the host's pid of the machine's first process
  local outside children
  outside=$(recorded_process "$FOLDER/pid") || die "$MACHINE is not running"
  children=$(cat "/proc/$outside/task/$outside/children")
  [ -n "$children" ] || die "$MACHINE has no process yet"
  echo "${children%% *}"
}
control_groups() { # prints the folders of its control groups (version 1 has one per controller)
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
  # the settings in the machine's sysctl.d that exist for each network namespace
  for tunable in ipv4/ip_forward bridge/bridge-nf-call-iptables; do
    [ ! -e "/proc/sys/net/$tunable" ] || echo 1 | nsenter --net="/run/netns/$MACHINE" tee "/proc/sys/net/$tunable" >/dev/null
  done
  while read -r folder; do
    mkdir -p "$folder"
    # Two machines together get as much of the processors as a target of `make test`.
    [ ! -f "$folder/cpu.shares" ] || echo 512 >"$folder/cpu.shares"
    [ ! -f "$folder/cpu.weight" ] || echo 50 >"$folder/cpu.weight"
    if [ -f "$folder/cpuset.cpus" ] && [ ! -f "$folder/cgroup.controllers" ]; then
      cat "${folder%/*}/cpuset.cpus" >"$folder/cpuset.cpus"
      cat "${folder%/*}/cpuset.mems" >"$folder/cpuset.mems"
      echo 1 >"$folder/cgroup.clone_children"
    fi
  done < <(control_groups)
  # nsenter, because `ip netns exec` mounts a /sys without control groups; a separate session, because the machine outlives its starter
  (
    keep_nothing_open
    UNIT_RUNNER=$UNIT_RUNNER exec setsid nsenter --net="/run/netns/$MACHINE" \
      unshare --mount --uts --ipc --pid --fork --kill-child "$HERE/machine.sh" initramfs "$FOLDER"
  ) >>"$FOLDER/boot.log" 2>&1 </dev/null &
  record_process $! "$FOLDER/pid"
  disown
}

authorities() { # prints the certificates in ignition.security
  python3 -c 'import gzip, json, sys, urllib.request
tls = json.load(open(sys.argv[1]))["ignition"].get("security", {}).get("tls", {})
for authority in tls.get("certificateAuthorities", []):
    text = urllib.request.urlopen(authority["source"]).read()
    print((gzip.decompress(text) if authority.get("compression") == "gzip" else text).decode())' "$FOLDER/config.ign"
}

# Runs inside the namespaces: mounts the root, runs Ignition, starts the first process.
initramfs() {
  local root=$FOLDER/root tunable file
  mount --make-rprivate /
  mount -t overlay overlay -o "lowerdir=$TREE,upperdir=$FOLDER/disk,workdir=$FOLDER/work" "$root"
  # containerd cannot mount its overlays on an overlay; etcd and the kubelet also work better directly on the disk
  mkdir -p "$root"/var/lib/{containerd,kubelet,etcd} "$root/var/log/pods" "$root/old"
  mount --bind "$FOLDER/containerd" "$root/var/lib/containerd"
  mount --bind "$FOLDER/kubelet" "$root/var/lib/kubelet"
  mount --bind "$FOLDER/etcd" "$root/var/lib/etcd"
  mount --bind "$FOLDER/pods" "$root/var/log/pods"
  if [ ! -e "$FOLDER/ignited" ]; then
    # Ignition trusts the CAs of its user data before it fetches anything; ignition-apply does so only later, so set them here
    authorities >"$FOLDER/authorities.pem"
    SSL_CERT_FILE=$FOLDER/authorities.pem bash -c 'exec -a ignition-apply "$@"' _ "$IGNITION" --root "$root" --ignore-unsupported \
      "$FOLDER/config.ign" || die "Ignition failed"
    touch "$FOLDER/ignited"
  fi
  # settings that the image would have: a host name, because no service sets one; the kubelet's control groups below the machine's; and no
  # removal of images or pods when the disk is full, because the disk is the host's and the images could not be fetched again
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
  # the kernel tunables that a kubelet writes belong to the whole host, so the kubelet gets files instead
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
  # unshare ignores TERM; killing it ends the whole machine
  signal_process KILL "$FOLDER/pid"
  for _ in $(seq 100); do
    is_alive "$FOLDER/pid" || break
    sleep 0.1
  done
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
    # containerd creates further ones, for example under "unified"
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
