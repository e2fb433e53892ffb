#!/usr/bin/env bash
# host.sh - a Debian host with systemd, made of namespaces, on which tests install services as an administrator does.
#
#   host.sh up FOLDER [PLACE=FOLDER...]  boots it; the other folders are mounted at their PLACEs, and changes to them stay in memory
#   host.sh run FOLDER WHERE             runs the script on standard input there as root
#   host.sh down FOLDER
#
# The Debian tree is made once, in the cache, with the archives that apt-get finds there: the host has no network but lo and provisioning0
# (10.0.0.1/24), and nobody listens at the other end of provisioning0. Services have users, credentials, namespaces and system call filters
# as on any host. Control groups only track processes. Needs root.
#
#   HOST_SUITE  bookworm, for the guides (default), or trixie, with fewer packages
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=debian.sh disable=SC1091
. "$HERE/debian.sh"
# shellcheck source-path=SCRIPTDIR source=processes.sh disable=SC1091
. "$HERE/processes.sh"
# shellcheck source-path=SCRIPTDIR source=suites.sh disable=SC1091
. "$HERE/suites.sh"

SUITE=${HOST_SUITE:-bookworm}
# packages that exist before the administrator comes
PACKAGES=systemd,systemd-sysv,dbus,procps,iproute2,ca-certificates,sudo,curl,sqlite3
case $SUITE in
  bookworm) PACKAGES+=,postgresql,python3-openstackclient TREE=host- ;;
  *) TREE=host-$SUITE- ;;
esac
# packages that the administrator installs
ARCHIVES=(ipxe apache2-utils bash-completion man-db haproxy)
PATHS=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

make_tree() { # prints its folder
  local tree
  tree=$BEDPLATE_CACHE/$TREE$(printf '%s\n' "$PACKAGES" "${ARCHIVES[@]}" | sha256sum | cut -c1-16)
  mkdir -p "$BEDPLATE_CACHE"
  exec 9>"$BEDPLATE_CACHE/host.lock"
  flock 9
  if [ ! -f "$tree/.complete" ]; then
    needs mmdebstrap pgrep
    rm -rf --one-file-system "$BEDPLATE_CACHE/$TREE"[0-9a-f]*/
    say "making $tree"
    # shellcheck disable=SC2016 # mmdebstrap's shell expands $1
    mmdebstrap --quiet --variant=minbase --include="$PACKAGES" --skip=cleanup/apt \
      --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
      --customize-hook="chroot \"\$1\" apt-get clean; chroot \"\$1\" apt-get -qq install -y --download-only ${ARCHIVES[*]}" \
      "$SUITE" "$tree.new" "deb [signed-by=$KEYRING] $(debian_mirror) $SUITE main" >&2
    touch "$tree.new/.complete"
    mv "$tree.new" "$tree"
  fi
  exec 9>&-
  printf '%s\n' "$tree"
}

up() { # FOLDER PLACE=FOLDER...
  local folder=$1 tree
  shift
  tree=$(make_tree)
  mkdir -p "$folder/machine"
  keep_nothing_open
  setsid unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup \
    "$HERE/host.sh" inside "$tree" "$folder" "$@" >"$folder/console.log" 2>&1 </dev/null &
  record_process $! "$folder/pid"
  # "degraded" is fine: some units need the hardware of a whole machine
  until_true "the machine to be up" running "$folder" || { cat "$folder/console.log" >&2; exit 1; }
}

inside() { # TREE FOLDER PLACE=FOLDER...: runs as first process of the namespaces and becomes systemd
  local tree=$1 machine=$2/machine root=$2/machine/root place node
  shift 2
  mount --make-rprivate /
  mount -t tmpfs -o mode=700 tmpfs "$machine"
  mkdir "$machine"/{changes,work,root}
  mount -t overlay overlay -o "lowerdir=$tree,upperdir=$machine/changes,workdir=$machine/work" "$root"
  for place; do
    mkdir -p "$root${place%%=*}"
    mount --bind "${place#*=}" "$root${place%%=*}"
    mount -o remount,bind,ro "$root${place%%=*}"
  done
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys"
  for place in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$root/$place"; done
  chmod 1777 "$root/tmp"
  for node in null zero full random urandom tty; do
    touch "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
  done
  mkdir "$root/dev/pts" "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"
  # Debian 13's systemd wants version 2 of control groups, which exists without controllers beside version 1.
  if [ -f /sys/fs/cgroup/cgroup.controllers ] || [ "$SUITE" != bookworm ]; then
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  else
    mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
    mkdir "$root/sys/fs/cgroup/systemd"
    mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
  fi
  ip link set lo up
  ip link add provisioning0 type veth peer name segment
  ip address add 10.0.0.1/24 dev provisioning0
  ip link set provisioning0 up
  ip link set segment up
  hostname host
  echo host >"$root/etc/hostname"
  printf '127.0.0.1 localhost\n127.0.1.1 host\n' >"$root/etc/hosts"
  ln -sf /dev/null "$root/etc/systemd/system/console-getty.service"
  cd "$root"
  mkdir -p .old
  pivot_root . .old
  umount -l .old
  # A child of systemd mounts a service's credentials. The service sees the mount only if it propagates.
  mount --make-rshared /
  exec env -i container=bedplate PATH="$PATHS" /lib/systemd/systemd --system --unit=multi-user.target
}

first() { # FOLDER: prints the process id of its systemd
  local outside
  outside=$(recorded_process "$1/pid") && pgrep -P "$outside"
}
enter() { # FOLDER COMMAND...
  local process
  process=$(first "$1") || die "no machine in $1"
  nsenter --target "$process" --mount --pid --uts --ipc --net --cgroup \
    env -i PATH="$PATHS" HOME=/root USER=root LANG=C.UTF-8 "${@:2}"
}
running() {
  local state
  state=$(enter "$1" systemctl is-system-running 2>/dev/null) || true
  [ "$state" = running ] || [ "$state" = degraded ]
}
until_true() { # WHAT COMMAND...
  local tries
  for ((tries = 0; tries < 600; tries++)); do
    ! "${@:2}" || return 0
    is_alive "$folder/pid" || { say "it ended while it was waited for $1"; return 1; }
    sleep 0.2
  done
  say "timed out waiting for $1"
  return 1
}

run() { # FOLDER WHERE: reads the whole script before running it
  # shellcheck disable=SC2016 # the shell there expands it
  enter "$1" bash -leuo pipefail -c 'cd "$1" && . /dev/stdin' bash "$2"
}

down() { # FOLDER
  signal_group KILL "$1/pid"
  rm -f "$1/pid"
}

is_root || die "needs root, for namespaces and the accounts of another system"
case ${1:-} in
  up) up "$(readlink -m "$2")" "${@:3}" ;;
  run) run "$2" "$3" ;;
  down) down "$2" ;;
  inside) inside "${@:2}" ;;
  *) die "usage: host.sh up FOLDER [PLACE=FOLDER...] | run FOLDER WHERE | down FOLDER" ;;
esac
