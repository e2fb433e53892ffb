#!/usr/bin/env bash
# tree.sh - makes the Debian trixie tree of machines and container images, once; prints its folder. Needs root.
#
# The tree holds the programs that a machine has besides Kubernetes, containerd 1.7 (the last that works with kubelet 1.20), runc and
# iptables,
# and the contents of images: etcd, the CNI plugins, socat.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../debian.sh disable=SC1091
. "$HERE/../debian.sh"
# shellcheck source-path=SCRIPTDIR source=../suites.sh disable=SC1091
. "$HERE/../suites.sh"

TREE=$BEDPLATE_CACHE/kubernetes/tree
PACKAGES=containerd,runc,containernetworking-plugins,etcd-server,etcd-client,iptables,conntrack,ipset,ebtables,ethtool,socat,iproute2,procps,kmod,curl,hostname,ca-certificates,libnss-myhostname

mkdir -p "$(dirname "$TREE")"
exec 9>"$TREE.lock"
flock 9
if [ ! -f "$TREE/.complete" ]; then
  is_root || die "needs root"
  needs mmdebstrap
  rm -rf "$TREE" "$TREE.new"
  say "making $TREE"
  mmdebstrap --quiet --variant=minbase --include="$PACKAGES" --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    trixie "$TREE.new" "deb [signed-by=$KEYRING] $(debian_mirror) trixie main" >&2
  touch "$TREE.new/.complete"
  mv "$TREE.new" "$TREE"
fi
printf '%s\n' "$TREE"
