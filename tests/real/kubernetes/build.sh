#!/usr/bin/env bash
# build.sh [PROGRAM...] - builds Kubernetes v1.20.2 from Debian's source package; prints the folder that holds the programs.
#
# KUBERNETES_VERSION=v1.20.3 builds the same source with another version stamp, for upgrades.
#
# Default programs: kube-apiserver kube-controller-manager kube-scheduler kubelet kubeadm kube-proxy kubectl pause, and kubeadm-short-lived,
# whose certificates end after 30 minutes instead of a year. Programs that exist are not built again. The first build takes less than three
# minutes on two processors. No root is needed.
#
# bookworm's source (1.20.5+really1.20.2) is the last in Debian that holds every program and the tools to build them; later suites have
# only kubectl. Upstream built v1.20.2 with Go 1.15, which is bullseye's.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../debian.sh disable=SC1091
. "$HERE/../debian.sh"
# shellcheck source-path=SCRIPTDIR source=../suites.sh disable=SC1091
. "$HERE/../suites.sh"

VERSION=${KUBERNETES_VERSION:-v1.20.2}
[[ $VERSION =~ ^v1\.20\.[23]$ ]] || die "there is no source of Kubernetes $VERSION"
COMMIT=faecb196815e248d3ecfb03c680a4507229c2a56 BUILD_DATE=2021-01-13T13:20:00Z
SOURCE_SUITE=bookworm GO_SUITE=bullseye GO_SERIES=1.15
WORK=$BEDPLATE_CACHE/kubernetes/build
PROGRAMS=$BEDPLATE_CACHE/kubernetes/$VERSION
[ $# -gt 0 ] || set -- kube-apiserver kube-controller-manager kube-scheduler kubelet kubeadm kubeadm-short-lived kube-proxy kubectl pause

missing=()
for program in "$@"; do [ -x "$PROGRAMS/$program" ] || missing+=("$program"); done
if [ ${#missing[@]} = 0 ]; then
  printf '%s\n' "$PROGRAMS"
  exit 0
fi

needs apt-get dpkg-deb tar xz patch gcc strip
mkdir -p "$WORK" "$PROGRAMS"
exec 9>"$WORK/lock"
flock 9
cd "$WORK"

GOROOT=$WORK/go/usr/lib/go-$GO_SERIES
SOURCE=$WORK/source
if [ ! -f go/.complete ] || [ ! -f "$SOURCE/.complete" ]; then read_suites "$WORK/apt" "$SOURCE_SUITE" "$GO_SUITE"; fi
if [ ! -f go/.complete ]; then
  say "fetching Go $GO_SERIES from $GO_SUITE"
  rm -rf go download
  mkdir -p go download
  (cd download && suite_get download "golang-$GO_SERIES-go/$GO_SUITE" "golang-$GO_SERIES-src/$GO_SUITE")
  for archive in download/*.deb; do dpkg-deb -x "$archive" go; done
  rm -rf download
  touch go/.complete
fi
if [ ! -f "$SOURCE/.complete" ]; then
  say "fetching the source package kubernetes from $SOURCE_SUITE"
  rm -rf "$SOURCE" download
  mkdir -p "$SOURCE" download/packaging
  package=$(suite_cache showsrc kubernetes | awk '/^Version:/ && /really1\.20\.2/ {print $2}' | sort -V | tail -n 1)
  [ -n "$package" ] || die "$SOURCE_SUITE has no source of Kubernetes 1.20.2 any more"
  (cd download && suite_get source --download-only "kubernetes=$package")
  tar xzf download/kubernetes_*.orig.tar.gz -C "$SOURCE" --strip-components=1
  tar xJf download/kubernetes_*.debian.tar.xz -C download/packaging
  while read -r name; do
    [ -z "$name" ] || patch -s -p1 -d "$SOURCE" <"download/packaging/debian/patches/$name"
  done <download/packaging/debian/patches/series
  rm -rf download
  echo "$package" >"$SOURCE/.complete"
fi

export GOROOT PATH=$GOROOT/bin:$PATH GOPATH=$WORK/gopath GOCACHE=$WORK/gocache
export GOPROXY=off GOSUMDB=off GOFLAGS=-mod=vendor GOTOOLCHAIN=local CGO_ENABLED=0
# one of the generators identifies a package by its path below GOPATH
mkdir -p "$GOPATH/src/k8s.io"
ln -sfn "$SOURCE" "$GOPATH/src/k8s.io/kubernetes"
cd "$GOPATH/src/k8s.io/kubernetes"

# Upstream's archive lacks this generated file. The generator must complain about exactly the types in upstream's list of exceptions,
# which shows that it saw the same types.
if [ ! -s pkg/generated/openapi/zz_generated.openapi.go ]; then
  say "generating the OpenAPI definitions"
  go build -o "$WORK/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
  packages=$({
    grep -rl --include='*.go' '+k8s:openapi-gen=' pkg cmd plugin
    (cd staging/src && grep -rl --include='*.go' '+k8s:openapi-gen=' k8s.io | sed 's#^#vendor/#')
  } | grep -v -E '^vendor/k8s.io/(code-generator|sample-apiserver)/' | xargs -n 1 dirname | sort -u | sed 's#^#k8s.io/kubernetes/#' | paste -sd,)
  GO111MODULE=off GOFLAGS='' "$WORK/openapi-gen" --logtostderr -i "$packages" -p k8s.io/kubernetes/pkg/generated/openapi \
    -O zz_generated.openapi -h hack/boilerplate/boilerplate.generatego.txt -r "$WORK/violations" >/dev/null
  cmp <(sort api/api-rules/violation_exceptions.list) <(sort "$WORK/violations")
fi

# without these flags the programs report v0.0.0-master, and kubeadm misbehaves
flags='-s -w'
for package in k8s.io/client-go/pkg/version k8s.io/component-base/version; do
  for setting in gitVersion=$VERSION gitMajor=1 gitMinor=20 gitCommit=$COMMIT gitTreeState=archive buildDate=$BUILD_DATE; do
    flags+=" -X $package.$setting"
  done
done
# No flag of the linker changes the lifetime of kubeadm's certificates, because it is a constant.
CONSTANTS=cmd/kubeadm/app/constants/constants.go
restore_constants() { [ ! -f "$CONSTANTS.orig" ] || mv "$CONSTANTS.orig" "$CONSTANTS"; }
restore_constants # an earlier build may have been interrupted
build_short_lived() {
  cp "$CONSTANTS" "$CONSTANTS.orig"
  sed -i 's/CertificateValidity = time.Hour \* 24 \* 365$/CertificateValidity = time.Minute * 30/' "$CONSTANTS"
  grep -q 'CertificateValidity = time.Minute \* 30$' "$CONSTANTS" || die "the lifetime of certificates is not in $CONSTANTS"
  go build -trimpath -tags providerless,dockerless -ldflags="$flags" -o "$WORK/built/kubeadm-short-lived" ./cmd/kubeadm
  restore_constants
}
# All in parallel, because linking alone keeps one processor busy. Cloud providers and Docker are left out: upstream removed them later,
# and nobody here uses them.
mkdir -p "$WORK/built"
commands=()
for program in "${missing[@]}"; do
  case $program in
  kubeadm-short-lived) build_short_lived ;;
  pause) gcc -Os -static -DVERSION=3.2 -o "$WORK/built/pause" build/pause/linux/pause.c && strip "$WORK/built/pause" ;;
  *) commands+=("./cmd/$program") ;;
  esac
done
if [ ${#commands[@]} -gt 0 ]; then
  go build -trimpath -tags providerless,dockerless -ldflags="$flags" -o "$WORK/built/" "${commands[@]}"
  say "built ${commands[*]##*/} in $SECONDS s"
fi
for program in "${missing[@]}"; do mv "$WORK/built/$program" "$PROGRAMS/$program"; done
printf '%s\n' "$PROGRAMS"
