#!/usr/bin/env bash
# openstack.sh - a real OpenStack of Debian's packages on one loopback address, for tests.
#
#   openstack.sh up                fetch and unpack (once), create and fill databases (once), start missing daemons
#   openstack.sh status            ask every API; list the daemons and their memory
#   openstack.sh env               print the admin's OS_* variables, for `eval`; they include the path of clouds.yaml
#   openstack.sh client ARGUMENT.. run the `openstack` command as OS_CLOUD (admin, alice or bob)
#   openstack.sh machines          up, and run servers as machines made of namespaces from now on (../machines)
#   openstack.sh compute-add NAME  add a hypervisor
#   openstack.sh ironic-add NAME   start a nova-compute whose servers are machines of the Bare Metal API in Keystone's catalogue
#   openstack.sh compute-del NAME  remove a hypervisor
#   openstack.sh reset             up, in the state after the first `up`
#   openstack.sh down              stop everything and keep the state
#   openstack.sh wipe              stop everything and remove all but the packages
#   openstack.sh inside COMMAND..  run a command among the unpacked packages
#
# Keystone, Glance, Placement, Nova with hypervisors of its fake driver, Neutron without agents, Octavia without amphorae, Cinder
# without disks, Designate with BIND, Swift with one device. Nothing is installed: the packages are unpacked into a separate root and run by
# chroot, which needs root. Measured on two processors: the first `up` 100 s once the packages are there, `reset` 62 s, `down` 11 s; 2.8 GiB
# of memory, 2.2 GiB on disk.
#
#   OPENSTACK_ADDRESS         the address of all services (default 127.0.0.1); a cloud keeps the address it was created with
#   OPENSTACK_HYPERVISORS     the hypervisors that `up` starts (default "compute1 compute2")
#   OPENSTACK_MECHANISMS      Neutron's mechanism drivers; the first that can binds a port (default bedplate, which binds any port)
#   UNIT_RUNNER               the first process of machines (default: the one in target/debug)
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../debian.sh disable=SC1091
. "$HERE/../debian.sh"
# shellcheck source-path=SCRIPTDIR source=../processes.sh disable=SC1091
. "$HERE/../processes.sh"

CLOUD=$BEDPLATE_CACHE/openstack          # all files of this cloud
ROOT=$CLOUD/root                         # the unpacked packages
STATE=$CLOUD/state                       # databases, images, keys: /state inside the root
LOG=$CLOUD/log                           # /log inside the root
RUN=$CLOUD/run                           # a pid file for each daemon
CLOUDS_YAML=$CLOUD/clouds.yaml
LOOPBACK=127.0.0.1
at() { # ADDRESS: sets the address of the cloud
  ADDRESS=$1 BASELINE=$CLOUD/baseline    # the state as the first `up` at this address left it
  [ "$ADDRESS" = $LOOPBACK ] || BASELINE+=-$ADDRESS
}
at "${OPENSTACK_ADDRESS:-$(cat "$STATE/.address" 2>/dev/null || echo $LOOPBACK)}"
MECHANISMS=${OPENSTACK_MECHANISMS:-bedplate}
read -ra HYPERVISORS <<<"${OPENSTACK_HYPERVISORS:-compute1 compute2}"
PASSWORD=bedplate                        # of every account; the cloud is only reachable on loopback
# shellcheck source-path=SCRIPTDIR source=root.sh disable=SC1091
. "$HERE/root.sh"
# shellcheck source-path=SCRIPTDIR source=daemons.sh disable=SC1091
. "$HERE/daemons.sh"

write_clouds_yaml() {
  local user project
  {
    echo "clouds:"
    for user in admin:admin alice:tenant-a bob:tenant-b; do
      project=${user#*:} user=${user%:*}
      cat <<C
  $user:
    auth:
      auth_url: http://$ADDRESS:$KEYSTONE/v3
      username: $user
      password: $PASSWORD
      project_name: $project
      user_domain_name: Default
      project_domain_name: Default
    region_name: RegionOne
    identity_api_version: 3
C
    done
  } >"$CLOUDS_YAML"
  install -D -m 644 "$CLOUDS_YAML" "$ROOT/etc/openstack/clouds.yaml"
}

seed() { inroot python3 /usr/local/bedplate/seed.py "$ADDRESS" "$@"; }

bootstrap_keystone() {
  local endpoint=http://$ADDRESS:$KEYSTONE/v3
  inroot keystone-manage bootstrap --bootstrap-password $PASSWORD --bootstrap-region-id RegionOne --bootstrap-admin-url "$endpoint" \
    --bootstrap-internal-url "$endpoint" --bootstrap-public-url "$endpoint" >"$LOG/bootstrap.log" 2>&1
}

save_baseline() { # stops the database for the copy; its clients reconnect
  stop mariadb
  rm -rf "$BASELINE"
  mkdir -p "$BASELINE"
  cp -a --reflink=auto "$STATE"/{mysql,keystone,octavia,glance,named,.migrated,.seeded,.address} "$BASELINE/"
  start_database
}

up() {
  is_root || die "needs root: it runs daemons by chroot"
  needs apt-get dpkg-deb chroot mount curl ip setsid
  if [ -d "$STATE" ] && [ ! -e "$STATE/.seeded" ]; then
    say "the last up did not end: beginning anew"
    down
    rm -rf "$STATE"
  fi
  mkdir -p "$STATE" "$LOG" "$RUN"
  unpack_root
  mount_root
  [ "$(cat "$STATE/.address" 2>/dev/null || echo "$ADDRESS")" = "$ADDRESS" ] ||
    die "this cloud was made for $(cat "$STATE/.address"): openstack.sh wipe first"
  if [ ! -e "$STATE/.seeded" ] && [ "$(cat "$BASELINE/.address" 2>/dev/null)" = "$ADDRESS" ]; then
    cp -a --reflink=auto "$BASELINE/." "$STATE/"
  fi
  echo "$ADDRESS" >"$STATE/.address"
  configure
  write_clouds_yaml
  start_back_ends
  [ -e "$STATE/.migrated" ] || migrate
  if [ ! -e "$STATE/.seeded" ]; then
    say "seeding Keystone"
    bootstrap_keystone
    start_keystone
    seed identity
  fi
  say "starting the services"
  start_services
  if [ ! -e "$STATE/.seeded" ]; then
    say "seeding the rest"
    wait_for "Designate's pool" inroot designate-manage pool update --file /etc/designate/pools.yaml
    seed cloud
    # the scheduler looks for new hosts by itself, but its first look can be a minute away
    inroot nova-manage cell_v2 discover_hosts --by-service >"$LOG/discover.log" 2>&1 || true
  fi
  wait_for "the hypervisors" seed wait-computes "${HYPERVISORS[@]}"
  wait_for "volumes" seed wait-volumes
  if [ ! -e "$STATE/.seeded" ]; then
    touch "$STATE/.seeded"
    save_baseline
  fi
  say "up: $CLOUDS_YAML"
}

down() {
  local daemons services=() back_ends=() daemon pid
  daemons=$(running)
  for daemon in $daemons; do
    case " ${BACK_ENDS[*]} " in
      *" $daemon "*) back_ends+=("$daemon") ;;
      *) services+=("$daemon") ;;
    esac
  done
  stop "${services[@]}"
  [ ! -e "$STATE/machines" ] || "$HERE/../machines/room.py" clear "$STATE/machines"
  stop "${back_ends[@]}"
  # RabbitMQ's epmd runs in the background without a pid file: it is ours if its root is
  for pid in $(pgrep -x epmd || true); do [ "$(readlink "/proc/$pid/root")" != "$ROOT" ] || kill "$pid" || true; done
  [ "$ADDRESS" = $LOOPBACK ] || ip addr del "$ADDRESS/32" dev lo 2>/dev/null || true
  unmount_root
}

reset() {
  down
  rm -rf "$STATE"
  at "${OPENSTACK_ADDRESS:-$LOOPBACK}"
  up
}

status() {
  local api daemon group pid memory total=0 bad=0
  for api in "${APIS[@]}"; do
    if answers "${api#*:}"; then
      echo "ok    ${api%:*} http://$ADDRESS:${api#*:}"
    else
      echo "DOWN  ${api%:*}"
      bad=1
    fi
  done
  for daemon in $(running); do
    if ! group=$(recorded_process "$RUN/$daemon.pid"); then
      echo "DEAD  $daemon: see $LOG/$daemon.log"
      bad=1
      continue
    fi
    memory=0
    for pid in $(pgrep -g "$group"); do
      memory=$((memory + $(awk '/^Pss:/ {print $2}' "/proc/$pid/smaps_rollup" 2>/dev/null || echo 0)))
    done
    total=$((total + memory))
    printf 'ok    %-24s %7d %5d MiB\n' "$daemon" "$group" $((memory / 1024))
  done
  echo "      $((total / 1024)) MiB in all"
  return $bad
}

environment() {
  cat <<C
export OS_AUTH_URL=http://$ADDRESS:$KEYSTONE/v3 OS_USERNAME=admin OS_PASSWORD=$PASSWORD OS_PROJECT_NAME=admin
export OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default OS_REGION_NAME=RegionOne OS_IDENTITY_API_VERSION=3
export OS_CLIENT_CONFIG_FILE=$CLOUDS_YAML BEDPLATE_TEST_OPENSTACK=$CLOUDS_YAML BEDPLATE_TEST_DNS=$ADDRESS:$DNS
C
  [ ! -S "$STATE/machines/room" ] || echo "export BEDPLATE_TEST_MACHINES=$STATE/machines"
}

usage() {
  sed -n '2,/^set -/p' "$0" | sed '$d; s/^# \{0,1\}//'
  exit 2
}

case ${1:-} in
  up | down | reset | status) "$1" ;;
  env) environment ;;
  client) inroot OS_CLOUD="${OS_CLOUD:-admin}" openstack "${@:2}" ;;
  compute-add)
    start_hypervisor "${2:?a name}"
    wait_for "$2" seed wait-computes "$2"
    ;;
  ironic-add)
    add_python python3-ironicclient
    start_hypervisor "${2:?a name}" "compute_driver = ironic.IronicDriver" "[ironic]" "$(filled_in <"$HERE/etc/service-user.conf")" \
      "api_retry_interval = 1"
    ;;
  compute-del)
    stop "nova-compute-${2:?a name}"
    seed forget-compute "$2"
    ;;
  wipe)
    down
    rm -rf "$STATE" "$LOG" "$RUN" "$CLOUD"/baseline*
    ;;
  machines) up && start_machines ;;
  inside) inroot "${@:2}" ;;
  *) usage ;;
esac
