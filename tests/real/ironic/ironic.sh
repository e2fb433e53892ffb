#!/usr/bin/env bash
# ironic.sh up | down | url | traits - a real Ironic, without authentication, whose answers are compared with ours, and which drives our
# agent.
#
#   ironic.sh up     starts it with an empty database, waits until it answers, and prints its URL
#   ironic.sh down   stops it
#   ironic.sh traits prints the standard traits that it takes
#
# It is one process (API and conductor) without a message broker, on SQLite.
#
#   IRONIC_ADDRESS  its address (127.0.0.1)    IRONIC_STATE   the folder of its state and its log (target/ironic)
#   IRONIC_PORT     its port (16385)           IRONIC_CONFIG  a file with further settings, which take precedence
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../debian.sh disable=SC1091
. "$HERE/../debian.sh"
# shellcheck source-path=SCRIPTDIR source=../processes.sh disable=SC1091
. "$HERE/../processes.sh"

PORT=${IRONIC_PORT:-16385}
ADDRESS=${IRONIC_ADDRESS:-127.0.0.1}
URL=http://$ADDRESS:$PORT
STATE=${IRONIC_STATE:-$(readlink -f "$HERE/../../..")/target/ironic}

config() {
  mkdir -p "$STATE"/{http/images,http/master,tftp/master}
  cat >"$STATE/ironic.conf" <<CONF
[DEFAULT]
auth_strategy = noauth
enabled_hardware_types = fake-hardware,redfish,ipmi,manual-management
enabled_bios_interfaces = no-bios,redfish,fake
enabled_boot_interfaces = ipxe,pxe,fake,redfish-virtual-media
enabled_console_interfaces = no-console,fake
enabled_deploy_interfaces = direct,fake,ramdisk
enabled_firmware_interfaces = no-firmware,fake,redfish
enabled_inspect_interfaces = no-inspect,agent,fake,redfish
enabled_management_interfaces = ipmitool,fake,redfish,noop
enabled_network_interfaces = noop
enabled_power_interfaces = ipmitool,fake,redfish
enabled_raid_interfaces = no-raid,agent,fake,redfish
enabled_rescue_interfaces = no-rescue,fake
enabled_storage_interfaces = noop,fake
enabled_vendor_interfaces = no-vendor,ipmitool,redfish,fake
default_network_interface = noop
rpc_transport = none
my_ip = $ADDRESS
host = ironic-$PORT
tempdir = $STATE
state_path = $STATE
[api]
host_ip = $ADDRESS
port = $PORT
[conductor]
automated_clean = false
# On SQLite the conductor writes no heartbeat after its first one. It stays alive for a day.
heartbeat_timeout = 86400
[database]
connection = sqlite:///$STATE/ironic.sqlite
sqlite_synchronous = false
[deploy]
http_root = $STATE/http
http_url = http://$ADDRESS:$((PORT + 1))
[pxe]
tftp_root = $STATE/tftp
images_path = $STATE/http/images
instance_master_path = $STATE/http/master
tftp_master_path = $STATE/tftp/master
[dhcp]
dhcp_provider = none
[inspector]
require_managed_boot = false
[nova]
send_power_notifications = false
[service_catalog]
endpoint_override = $URL
[oslo_concurrency]
lock_path = $STATE
CONF
}

up() {
  local venv tries settings=(--config-file "$STATE/ironic.conf")
  down
  venv=$("$HERE/../venv.sh" "$HERE/requirements.txt")
  config
  [ -z "${IRONIC_CONFIG:-}" ] || settings+=(--config-file "$IRONIC_CONFIG")
  "$venv/bin/ironic-dbsync" "${settings[@]}" create_schema >"$STATE/log" 2>&1
  setsid "$venv/bin/ironic" "${settings[@]}" >>"$STATE/log" 2>&1 </dev/null &
  record_process $! "$STATE/pid"
  for ((tries = 0; tries < 600; tries++)); do
    if curl -fs -m 5 "$URL/v1/drivers" | grep -q fake-hardware; then
      echo "$URL"
      return
    fi
    is_alive "$STATE/pid" || break
    sleep 0.2
  done
  tail -5 "$STATE/log" >&2
  say "Ironic does not answer at $URL"
  return 1
}

down() {
  signal_group TERM "$STATE/pid"
  while is_alive "$STATE/pid"; do sleep 0.1; done
  rm -rf "$STATE"
}

case ${1:-} in
  up | down) "$1" ;;
  url) echo "$URL" ;;
  traits) "$("$HERE/../venv.sh" "$HERE/requirements.txt")/bin/python" -c 'import os_traits; print(*sorted(os_traits.get_traits()), sep="\n")' ;;
  *) sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2 ;;
esac
