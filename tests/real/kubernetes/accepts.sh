#!/usr/bin/env bash
# accepts.sh FOLDER - starts an API server of Kubernetes with etcd, and applies the kustomization in FOLDER with kubectl, twice. Fails if the API server
# refuses an object, or if the second time changes one. Needs root, for a network namespace.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../debian.sh disable=SC1091
. "$HERE/../debian.sh"
FOLDER=${1:?usage: accepts.sh FOLDER}

if [ -z "${ACCEPTS_INSIDE:-}" ]; then
  is_root || die "needs root"
  PROGRAMS=$("$HERE/build.sh" kube-apiserver kubectl) TREE=$("$HERE/tree.sh")
  export PROGRAMS TREE ACCEPTS_INSIDE=yes
  exec unshare --net --pid --fork --kill-child --mount-proc "$HERE/accepts.sh" "$FOLDER"
fi

ip link set lo up
ip address add 192.0.2.1/32 dev lo # the API server wants an address that is not loopback
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
until_true() { # WHAT LOG COMMAND...
  local tries
  for ((tries = 0; tries < 300; tries++)); do
    ! "${@:3}" >/dev/null 2>&1 || return 0
    sleep 0.2
  done
  tail -n 40 "$2" >&2
  die "timed out waiting for $1"
}
openssl genrsa -out "$WORK/accounts.key" 2048 2>/dev/null
# etcd is a program of another Debian than this host's
mkdir "$WORK/etcd"
mount --bind "$WORK" "$TREE/mnt"
chroot "$TREE" /usr/bin/etcd --data-dir /mnt/etcd --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380 >"$WORK/etcd.log" 2>&1 &
until_true etcd "$WORK/etcd.log" curl -sf http://127.0.0.1:2379/health
echo 'secret,admin,admin,system:masters' >"$WORK/tokens"
"$PROGRAMS/kube-apiserver" --etcd-servers http://127.0.0.1:2379 --bind-address 127.0.0.1 --advertise-address 192.0.2.1 --secure-port 6443 --cert-dir "$WORK" \
  --token-auth-file "$WORK/tokens" --authorization-mode RBAC --service-cluster-ip-range 10.0.0.0/24 --service-account-issuer https://127.0.0.1 \
  --service-account-key-file "$WORK/accounts.key" --service-account-signing-key-file "$WORK/accounts.key" >"$WORK/apiserver.log" 2>&1 &
kubectl() { "$PROGRAMS/kubectl" --cache-dir "$WORK/cache" --server https://127.0.0.1:6443 --insecure-skip-tls-verify --token secret "$@"; }
until_true "the API server" "$WORK/apiserver.log" kubectl get --raw /readyz
kubectl apply -k "$FOLDER"
# A StatefulSet counts as configured each time, because the API server adds fields to its claims; its generation tells.
generations() { kubectl --namespace bedplate get deployments,statefulsets --output 'jsonpath={range .items[*]}{.metadata.name} {.metadata.generation}{"\n"}{end}'; }
before=$(generations)
kubectl apply -k "$FOLDER" >/dev/null
[ "$(generations)" = "$before" ] || die "applied twice, an object changed: $(generations)"
