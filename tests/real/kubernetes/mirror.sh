#!/usr/bin/env bash
# mirror.sh - makes the folder from which machines fetch everything, once; prints its path. Needs root.
#
#   kubeadm kubelet kubectl    the programs made by build.sh, and kubeadm-short-lived
#   cni-plugins.tgz            Debian's CNI plugins
#   IMAGE.tar                  images: kube-apiserver kube-controller-manager kube-scheduler kube-proxy etcd pause, and tools (a shell,
#                              curl, socat), which stands in for workloads of users
#   v1.20.3/                   programs and images of Kubernetes with another version stamp, for upgrades
#   SHA256SUMS                 checksums of all of these;  ETCD_TAG  the tag of etcd's image
#
# Images are named bedplate.invalid/NAME:TAG. No registry ever serves that name, so an image that is missing here fails to load.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../debian.sh disable=SC1091
. "$HERE/../debian.sh"

MIRROR=$BEDPLATE_CACHE/kubernetes/mirror
VERSION=v1.20.2 NEWER=v1.20.3 REPOSITORY=bedplate.invalid
if [ -f "$MIRROR/.complete" ] && [ -d "$MIRROR/$NEWER" ] && [ -f "$MIRROR/kubeadm-short-lived" ]; then
  printf '%s\n' "$MIRROR"
  exit 0
fi

is_root || die "needs root"
PROGRAMS=$("$HERE/build.sh")
NEWER_PROGRAMS=$(KUBERNETES_VERSION=$NEWER "$HERE/build.sh" kube-apiserver kube-controller-manager kube-scheduler kubelet kubeadm kube-proxy kubectl)
TREE=$("$HERE/tree.sh")
exec 9>"$MIRROR.lock"
flock 9
rm -rf "$MIRROR" "$MIRROR.new"
mkdir -p "$MIRROR.new/$NEWER"
cd "$MIRROR.new"

image() { # NAME:TAG WORDS... - makes an image in the folder $OUT
  local name=$1
  shift
  say "image $name"
  "$HERE/image.py" "$REPOSITORY/$name" "$OUT/${name%:*}.tar" --tree "$TREE" "$@"
}

version() { # VERSION PROGRAMS - the programs and images of a version, in the folder $OUT
  local program module proxy
  cp "$2"/{kubeadm,kubelet,kubectl} "$OUT"
  for program in kube-apiserver kube-controller-manager kube-scheduler; do
    image "$program:$1" --directory tmp --file "$2/$program=/usr/local/bin/$program" --link "usr/bin/$program=/usr/local/bin/$program"
  done
  proxy=(--directory tmp --directory run --directory var/lib --directory etc --file "$2/kube-proxy=/usr/local/bin/kube-proxy")
  for program in xtables-nft-multi conntrack ipset; do proxy+=(--file "$TREE/usr/sbin/$program=/usr/sbin/$program"); done
  for program in {ip,ip6}tables{,-save,-restore}; do proxy+=(--link "usr/sbin/$program=xtables-nft-multi"); done
  for module in "$TREE"/usr/lib/x86_64-linux-gnu/xtables/*.so; do proxy+=(--file "$module=${module#"$TREE"}"); done
  proxy+=(--file "$TREE/usr/bin/kmod=/usr/sbin/modprobe" --file "$TREE/usr/bin/dash=/bin/sh")
  image "kube-proxy:$1" "${proxy[@]}"
}

OUT=$NEWER version "$NEWER" "$NEWER_PROGRAMS"
OUT=.
version "$VERSION" "$PROGRAMS"
cp "$PROGRAMS/kubeadm-short-lived" .
tar -czf cni-plugins.tgz --owner=0 --group=0 --mtime=@0 -C "$TREE/usr/lib/cni" .
image pause:3.2 --entry /pause --file "$PROGRAMS/pause=/pause"
etcd=$(chroot "$TREE" etcd --version | sed -n 's/^etcd Version: //p')-0
echo "$etcd" >ETCD_TAG
image "etcd:$etcd" --directory tmp --file "$TREE/usr/bin/etcd=/usr/local/bin/etcd" --file "$TREE/usr/bin/etcdctl=/usr/local/bin/etcdctl"

tools=(--directory tmp --file "$TREE/usr/bin/dash=/bin/sh" --file "$TREE/usr/sbin/ip=/usr/sbin/ip")
for program in cat sleep hostname socat curl; do tools+=(--file "$TREE/usr/bin/$program=/usr/bin/$program"); done
image tools:1 "${tools[@]}"

sums=$(find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum)
printf '%s\n' "$sums" >SHA256SUMS
touch .complete
mv "$MIRROR.new" "$MIRROR"
printf '%s\n' "$MIRROR"
