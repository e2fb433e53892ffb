//! Backups of etcd on a member: how a member saves and tests snapshots, and starts etcd from one.
//!
//! A unit of its own asks clusterd for work, over the connection that reports use. The programs are those of etcd's image, which the member
//! has anyway, and whose version is that of the data: `etcdctl` saves, and `etcdutl` restores, or `etcdctl` before etcd 3.5. Each work is a
//! run of the script, so a failure ends that run only, and its last line is the reason that clusterd gets.

use ignition::build::{config, file, inline, unit, with_dropin};
use ignition::{File, Unit, merge};
use secrecy::ExposeSecret;

use crate::reports::{AUTHORITY, Reports};
use crate::{NodeConfig, units};

/// The path of the script.
const SCRIPT: &str = "/etc/bedplate/backups";
/// The file with the URL at which the member asks for work.
const URL: &str = "/etc/bedplate/backups.url";
/// The curl configuration for asking clusterd, read by `curl --config`.
const CURL: &str = "/etc/bedplate/backups.curl";
/// The file with the number of restorations that the member knows of.
const RESTORES: &str = "/var/lib/bedplate/backups/restores";

/// Returns the files and the unit with which a member asks clusterd for work on backups.
pub(crate) fn asking(reports: &Reports) -> (Vec<File>, Unit) {
    let curl = format!(
        "# Read by curl --config, so that the token does not appear in the list of processes.
header = \"Authorization: Bearer {}\"
cacert = \"{AUTHORITY}\"
noproxy = \"*\"
silent
show-error
fail
connect-timeout = 5
",
        reports.token.expose_secret(),
    );
    let files = vec![
        file(CURL, 0o600, inline(curl.as_bytes())),
        file(URL, 0o644, inline(format!("{}\n", reports.backups).as_bytes())),
        file(SCRIPT, 0o644, inline(SCRIPT_TEXT.as_bytes())),
        file(RESTORES, 0o600, inline(format!("{}\n", reports.restores).as_bytes())),
    ];
    (files, unit("bedplate-backups.service", UNIT))
}

/// Returns the config of a control-plane member whose etcd starts from a backup, by the id of the backup. `node` is the config of one of the
/// first control-plane members, with [`crate::reporting()`].
///
/// All control-plane members restore the same snapshot for the same list of members, as etcd's documentation on disaster recovery says, so
/// none waits for another one.
pub fn starting_from_backup(node: &NodeConfig, backup: &str) -> NodeConfig {
    let start = format!(
        "[Unit]
RequiresMountsFor=/var/lib/etcd

[Service]
TimeoutStartSec=45min
ExecStartPre=/bin/bash {SCRIPT} start {backup}
"
    );
    let rejoin = format!("[Service]\nExecStartPre=/bin/bash {SCRIPT} rejoin\n");
    let dropin =
        |name: &str, text: &str| with_dropin(Unit::new(name.to_owned()), "40-backup.conf", text);
    let units = vec![dropin(units::CONTROL_PLANE, &start), dropin(units::MARK, &rejoin)];
    let added = config(Vec::new(), Vec::new(), units);
    NodeConfig { machine: node.machine.clone(), config: merge(&node.config, &added) }
}

/// The script of the unit. Every command may run again, so the script may be interrupted anywhere.
const SCRIPT_TEXT: &str = r##"#!/bin/bash
# backups - works on backups of etcd as clusterd asks.
#   watch         asks for work, again and again
#   save ID       takes a snapshot and sends it to clusterd
#   test ID       fetches the stored snapshot and restores it into an empty folder
#   start ID      puts the stored snapshot in the place of etcd's data, before etcd starts for the first time
#   rejoin        replaces the Kubernetes node of the lost server of this name
set -euo pipefail
umask 077
state=/var/lib/bedplate/backups
data=/var/lib/etcd
pki=/etc/kubernetes/pki/etcd
manifest=/etc/kubernetes/manifests/etcd.yaml
url=$(cat /etc/bedplate/backups.url)
export ETCDCTL_API=3

call() { curl --config /etc/bedplate/backups.curl "$@"; }
transfer() { call --max-time 1500 "$@"; }
argument() { sed -n "s/^ *- --$1=//p" "$manifest"; } # NAME: the value of an argument of etcd
number() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"; }  # FIELD: a number in the JSON of standard input

run() { # PROGRAM ARGUMENT...: runs a program of etcd: the server's own, if the image of the server has them, or that of etcd's image
  if command -v etcdctl >/dev/null; then
    "$@"
    return
  fi
  local image
  image=$(sed -n 's/^ *image: //p' "$manifest")
  if ! ctr --namespace k8s.io images ls --quiet | grep -xF "$image" >/dev/null; then
    ctr --namespace k8s.io images pull "$image" >/dev/null
  fi
  ctr --namespace k8s.io run --rm --net-host --env ETCDCTL_API=3 \
    --mount "type=bind,src=$state,dst=$state,options=rbind:rw" \
    --mount "type=bind,src=$data,dst=$data,options=rbind:rw" \
    --mount "type=bind,src=$pki,dst=$pki,options=rbind:ro" \
    "$image" "bedplate-etcd-$$" "$@"
}

offline() { # ARGUMENT...: runs the program that works on snapshots
  if run etcdutl version >/dev/null 2>&1; then
    run etcdutl "$@"
  else
    run etcdctl "$@"
  fi
}

restore() { # SNAPSHOT FOLDER ARGUMENT...: makes a folder of etcd's data
  local bump=()
  # Clients would wait for changes after a revision that is in the future now. etcd before 3.4.28 and 3.5.10 cannot help that.
  if offline snapshot restore --help 2>&1 | grep -e --bump-revision >/dev/null; then
    bump=(--bump-revision 1000000000 --mark-compacted)
  fi
  offline snapshot restore "$1" --data-dir "$2" "${bump[@]}" "${@:3}" >/dev/null
}

tell() { # ID RESULT MESSAGE
  call --max-time 30 --data-urlencode "result=$2" --data-urlencode "message=$3" "$url/$1/result"
}

save() {
  local snapshot=$state/snapshot.db revision version sum
  local own=(--cacert "$pki/ca.crt" --cert "$pki/healthcheck-client.crt" --key "$pki/healthcheck-client.key")
  rm -f "$snapshot" "$snapshot.part"
  run etcdctl --endpoints=https://127.0.0.1:2379 "${own[@]}" snapshot save "$snapshot" >/dev/null
  revision=$(offline snapshot status "$snapshot" --write-out=json | number revision)
  version=$(curl --silent --show-error --fail --noproxy '*' --max-time 10 "${own[@]}" https://127.0.0.1:2379/version |
    sed -n 's/.*"etcdserver":"\([^"]*\)".*/\1/p')
  sum=$(sha256sum "$snapshot" | cut -d ' ' -f 1)
  transfer --upload-file "$snapshot" "$url/$1?revision=$revision&etcd=$version&sha256=$sum"
  rm -f "$snapshot"
}

try() {
  local snapshot=$state/stored.db scratch=$state/scratch
  rm -rf "$snapshot" "$scratch"
  transfer --output "$snapshot" "$url/$1"
  restore "$snapshot" "$scratch"
  test -s "$scratch/member/snap/db"
  rm -rf "$snapshot" "$scratch"
  tell "$1" success ""
}

start() {
  local snapshot=$state/stored.db new=$data/restored
  [ ! -d "$data/member" ] || return 0
  mkdir -p "$state" "$data"
  kubeadm init phase etcd local --config=/etc/bedplate/init-etcd.yaml >/dev/null
  rm -rf "$snapshot" "$new"
  transfer --output "$snapshot" "$url/$1"
  restore "$snapshot" "$new" --name "$(argument name)" \
    --initial-cluster "$(argument initial-cluster)" --initial-cluster-token "$(argument initial-cluster-token)" \
    --initial-advertise-peer-urls "$(argument initial-advertise-peer-urls)"
  mv "$new/member" "$data/member"
  rm -rf "$snapshot" "$new"
}

restart_kubelet() { pkill -x kubelet || true; } # systemd starts the kubelet again, and the kubelet registers its node

rejoin() { # the provider id of a node cannot be changed, and is that of the lost server
  [ ! -f "$state/rejoined" ] || return 0
  kubectl get --raw=/readyz --request-timeout=5s >/dev/null
  kubectl delete node "$(hostname)" --ignore-not-found --wait=false --request-timeout=20s >/dev/null
  restart_kubelet
  touch "$state/rejoined"
}

work() { # WORK ID
  case $1 in
  save | test)
    bash "$0" "$1" "$2" 2>"$state/errors" || tell "$2" failed "$(tail -n 1 "$state/errors" | cut -c 1-300)" || true
    sleep 2
    ;;
  refresh)
    restart_kubelet
    echo "$2" >"$state/restores"
    ;;
  esac
}

ask() { # prints the HTTP status; saves the answer to a file
  call --max-time 30 --output "$state/answer" --write-out '%{http_code}' "$url?restores=$(cat "$state/restores")"
}

watch() {
  local work id
  while :; do
    case $(ask 2>/dev/null || true) in
    200)
      read -r work id <"$state/answer" || true
      work "$work" "$id"
      ;;
    202) sleep 2 ;;
    *) sleep 30 ;;
    esac
  done
}

case $1 in
test) try "$2" ;;
*) "$@" ;;
esac
"##;

/// The unit that runs the script.
const UNIT: &str = "[Unit]
Description=Backups of etcd ordered by clusterd
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Environment=PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/bin/bash /etc/bedplate/backups watch
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
";
