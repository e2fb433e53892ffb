# shellcheck shell=bash
# daemons.sh - the daemons of openstack.sh, and functions that start, await and stop a daemon. Sourced.
# shellcheck disable=SC2034 # openstack.sh uses some of these
KEYSTONE=5000 PLACEMENT=8778 GLANCE=9292 NOVA=8774 NEUTRON=9696 OCTAVIA=9876 DESIGNATE=9001 CINDER=8776 SWIFT=6203
# shellcheck disable=SC2034
DNS=5300 RABBIT=5672 RABBIT_DISTRIBUTION=25672 EPMD=14369 MEMCACHE=11211
APIS=("keystone:$KEYSTONE" "placement:$PLACEMENT" "glance-api:$GLANCE" "nova-api:$NOVA" "neutron-server:$NEUTRON"
  "octavia-api:$OCTAVIA" "designate-api:$DESIGNATE" "cinder-api:$CINDER" "swift-proxy:$SWIFT")
# shellcheck disable=SC2034
BACK_ENDS=(mariadb rabbitmq memcached named)
DATABASES=(keystone placement glance nova_api nova_cell0 nova neutron octavia designate cinder)

running() { [ ! -d "$RUN" ] || find "$RUN" -name '*.pid' -printf '%f\n' | sed 's/\.pid$//' | sort; }

start() { # NAME COMMAND...: starts it in the root, in the background, in a separate process group, unless it runs already
  start_outside "$1" chroot "$ROOT" /usr/bin/env -i "${INSIDE[@]}" "${@:2}"
}
start_outside() { # NAME COMMAND...
  local name=$1
  shift
  ! is_alive "$RUN/$name.pid" || return 0
  (
    keep_nothing_open
    exec setsid "$@"
  ) >>"$LOG/$name.log" 2>&1 </dev/null &
  record_process $! "$RUN/$name.pid"
}

stop() { # NAME...: ends their process groups in parallel, and kills them after ten seconds
  local name group groups=() left
  for name in "$@"; do
    ! group=$(recorded_process "$RUN/$name.pid") || groups+=("$group")
  done
  for group in "${groups[@]}"; do kill -TERM -- "-$group" 2>/dev/null || true; done
  # The kernel may reuse the number of a group once it is empty, so an empty group leaves the list.
  for _ in $(seq 100); do
    left=()
    for group in "${groups[@]}"; do ! kill -0 -- "-$group" 2>/dev/null || left+=("$group"); done
    groups=("${left[@]}")
    [ ${#groups[@]} != 0 ] || break
    sleep 0.1
  done
  for group in "${groups[@]}"; do kill -KILL -- "-$group" 2>/dev/null || true; done
  for name in "$@"; do rm -f "$RUN/$name.pid"; done
}

# Waits until COMMAND succeeds, five minutes at most: a busy machine may need minutes for what an idle one does in seconds. If WHAT is a
# daemon, its end also ends the wait. A failure prints the last lines of the newest logs.
wait_for() { # WHAT COMMAND...
  local end=$((SECONDS + 300)) what=$1
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || failed "$what did not come up in 300 s"
    [ ! -e "$RUN/$what.pid" ] || is_alive "$RUN/$what.pid" || failed "$what ended"
    sleep 0.3
  done
}
failed() { # WHY
  local log
  find "$LOG" -name '*.log' -printf '%T@ %p\n' | sort -rn | head -n 4 | while read -r _ log; do
    echo "---- the end of $log"
    tail -n 10 "$log"
  done >&2
  die "$1: see $LOG"
}
answers() { # PORT: whether it gives any HTTP answer but a server error
  local status
  status=$(curl -s -o /dev/null -m 5 -w '%{http_code}' "http://$ADDRESS:$1/" || true)
  [ "${status:-000}" != 000 ] && [ "$status" -lt 500 ]
}
listens() { (exec 3<>"/dev/tcp/$ADDRESS/$1") 2>/dev/null; }

start_database() {
  start mariadb mariadbd --defaults-file=/etc/my.cnf
  wait_for mariadb inroot mariadb-admin --socket=/run/mysql.sock ping
}

start_back_ends() {
  # named listens only on addresses that an interface has, and lo does not have 127.0.0.2 and the like
  [ -n "$(ip -o addr show dev lo to "$ADDRESS")" ] || ip addr add "$ADDRESS/32" dev lo
  [ -d "$STATE/mysql/mysql" ] || inroot mariadb-install-db --defaults-file=/etc/my.cnf --auth-root-authentication-method=normal \
    --skip-test-db >"$LOG/mysql-install.log" 2>&1
  start rabbitmq ERL_EPMD_ADDRESS="$ADDRESS" ERL_EPMD_PORT=$EPMD RABBITMQ_NODENAME=rabbit@localhost \
    RABBITMQ_DIST_PORT=$RABBIT_DISTRIBUTION RABBITMQ_MNESIA_BASE=/state/rabbit RABBITMQ_LOG_BASE=/log \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {${ADDRESS//./,}} +S 1:1 +sbwt none" \
    /usr/lib/rabbitmq/bin/rabbitmq-server
  start memcached memcached -u root -l "$ADDRESS" -p $MEMCACHE -m 64
  start named named -f -u root -c /etc/bind/named.conf
  start_database
}

migrate() { # creates the schemas, one per processor at a time, the slowest first
  say "making the databases"
  local database
  for database in "${DATABASES[@]}"; do echo "CREATE DATABASE IF NOT EXISTS $database;"; done | inroot mariadb --socket=/run/mysql.sock
  inroot openssl req -x509 -newkey rsa:2048 -passout "pass:$PASSWORD" -subj /CN=bedplate -days 3650 -keyout /state/octavia/ca.key \
    -out /state/octavia/ca.crt 2>/dev/null
  export ROOT LOG
  # shellcheck disable=SC2016 # expanded by the inner shell
  tr '\n' '\0' <<'M' | xargs -0 -P"$(nproc)" -n1 bash -c '
    name=${!#%%-*}
    chroot "$ROOT" /usr/bin/env -i "${@:1:$#-1}" bash -c "${!#}" >"$LOG/migrate-$name.log" 2>&1 ||
      { echo "the migration of $name failed: see $LOG/migrate-$name.log" >&2; exit 255; }' _ "${INSIDE[@]}"
neutron-db-manage --config-file /etc/neutron/neutron.conf --config-file /etc/neutron/plugins/ml2/ml2_conf.ini upgrade heads
nova-manage api_db sync && nova-manage cell_v2 map_cell0 && nova-manage db sync && { nova-manage cell_v2 list_cells | grep -q cell1 || nova-manage cell_v2 create_cell --name cell1; }
keystone-manage db_sync && keystone-manage fernet_setup --keystone-user root --keystone-group root && keystone-manage credential_setup --keystone-user root --keystone-group root
octavia-db-manage upgrade head
cinder-manage db sync
designate-manage database sync
glance-manage db_sync
placement-manage db sync
M
  touch "$STATE/.migrated"
}

start_wsgi() { # NAME PORT SCRIPT
  start "$1" uwsgi-core --plugin python311 --http-socket "$ADDRESS:$2" --wsgi-file "$3" --procname-prefix-spaced "$1" \
    --master --processes 1 --threads 8 --enable-threads --lazy-apps --die-on-term --buffer-size 65535 \
    --add-header 'Connection: close' --disable-logging --no-orphans --need-app
}
start_keystone() {
  start_wsgi keystone $KEYSTONE /usr/bin/keystone-wsgi-public
  wait_for keystone answers $KEYSTONE
}

start_swift() {
  local part
  [ -e "$STATE/swift/object.ring.gz" ] || inroot python3 /usr/local/bedplate/rings.py "$ADDRESS" /state/swift
  for part in account container object proxy; do
    start "swift-$part" "swift-$part-server" "/etc/swift/$part-server.conf" -v
  done
}

start_hypervisor() { # NAME [SETTING...]
  mkdir -p "$STATE/nova/$1"
  printf '%s\n' '[DEFAULT]' "host = $1" "state_path = /state/nova/$1" "${@:2}" >"$ROOT/etc/nova/$1.conf"
  start "nova-compute-$1" nova-compute --config-file /etc/nova/nova.conf --config-file "/etc/nova/$1.conf"
}

# From now on, the servers of the hypervisors run as machines made of namespaces.
start_machines() {
  local host unit_runner
  unit_runner=${UNIT_RUNNER:-$HERE/../../../target/debug/unit-runner}
  [ -x "$unit_runner" ] || die "there is no $unit_runner: cargo build -p unit-runner makes it"
  "$HERE/../kubernetes/tree.sh" >/dev/null
  eval "$(environment)"
  UNIT_RUNNER=$unit_runner start_outside room "$HERE/../machines/room.py" "$STATE/machines" "$ROOT"
  wait_for room test -S "$STATE/machines/room"
  for host in "${HYPERVISORS[@]}"; do
    stop "nova-compute-$host"
    # a short interval, so that Nova soon notices a machine that lost its power
    start_hypervisor "$host" "compute_driver = bedplate.Namespaces" "force_config_drive = true" "sync_power_state_interval = 10"
  done
  wait_for "the hypervisors" seed wait-computes "${HYPERVISORS[@]}"
}

start_services() {
  local host api
  # Nova only finds compute drivers below nova.virt
  ln -sfn /usr/local/bedplate/bedplate_nova.py "$ROOT/usr/lib/python3/dist-packages/nova/virt/bedplate.py"
  start_keystone
  wait_for rabbitmq listens $RABBIT
  start_wsgi placement $PLACEMENT /usr/bin/placement-api
  start neutron-server neutron-server --config-file /etc/neutron/neutron.conf --config-file /etc/neutron/plugins/ml2/ml2_conf.ini
  start nova-conductor nova-conductor
  start nova-api nova-api
  start glance-api glance-api --config-file /etc/glance/glance-api.conf
  start nova-scheduler nova-scheduler
  start designate-central designate-central
  start_wsgi octavia-api $OCTAVIA /usr/bin/octavia-wsgi
  start octavia-worker octavia-worker
  start_wsgi cinder-api $CINDER /usr/bin/cinder-wsgi
  start cinder-scheduler cinder-scheduler
  start cinder-volume cinder-volume
  start designate-api designate-api
  start designate-worker designate-worker
  start designate-mdns designate-mdns
  start designate-producer designate-producer
  start_swift
  # without Placement, nova-compute would wait a minute before its next attempt
  wait_for placement answers $PLACEMENT
  for host in "${HYPERVISORS[@]}"; do start_hypervisor "$host"; done
  for api in "${APIS[@]}"; do wait_for "${api%:*}" answers "${api#*:}"; done
}
