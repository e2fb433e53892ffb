#!/usr/bin/env bash
# packaged.sh PROGRAMS RAMDISK SUITE... - makes a release of finished programs with a throw-away key. Checks that two builds give the same bytes,
# that lintian accepts the packages, and that podman runs the image of baremetald. Then installs, upgrades, removes and purges the packages by apt
# from the signed repository, on a Debian machine of each suite.
# shellcheck disable=SC2016 # the shell of the machine expands the scripts
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
ROOT=$HERE/../..
# shellcheck source-path=SCRIPTDIR source=debian.sh disable=SC1091
. "$HERE/debian.sh"
PROGRAMS=$(readlink -e "${1:?usage: packaged.sh PROGRAMS RAMDISK SUITE...}") RAMDISK=$(readlink -e "${2:?}")
shift 2
# shellcheck source-path=SCRIPTDIR source=../../deploy/packages/version.sh disable=SC1091
. "$ROOT/deploy/packages/version.sh"
export COMPRESSION=0
is_root || die "needs root, for Debian machines of namespaces"

WORK=$(mktemp -d)
chmod 755 "$WORK"
end() {
  local folder
  for folder in "$WORK"/machine-*; do [ ! -d "$folder" ] || "$HERE/host.sh" down "$folder"; done
  gpgconf --homedir "$WORK/key" --kill gpg-agent || true
  rm -rf "$WORK"
}
trap end EXIT

export GNUPGHOME=$WORK/key
mkdir -m 700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key 'Bedplate test' ed25519 sign 1d
say "release $VERSION"
SNAPSHOT=yes ARCHITECTURES=amd64 PROGRAMS=$PROGRAMS RAMDISK=$RAMDISK "$ROOT/deploy/packages/release.sh" 'Bedplate test' "$WORK/release"
gpg --quiet --verify "$WORK/release/SHA256SUMS.asc" "$WORK/release/SHA256SUMS" 2>/dev/null || die "the signature of the checksums is wrong"
(cd "$WORK/release" && sha256sum --quiet --check SHA256SUMS)
lintian --allow-root --fail-on warning,error "$WORK"/release/*.deb >&2 || die "lintian refuses a package"

packages() { "$ROOT/deploy/packages/build.sh" "$PROGRAMS" "$RAMDISK" "$1"; }
(
  umask 077
  cd /
  export TZ=Asia/Tokyo LC_ALL=C.UTF-8
  packages "$WORK/again"
  "$ROOT/deploy/packages/images.sh" "$WORK/again" "$WORK/again" bedplate-console
)
for file in "$WORK"/again/*; do cmp "$file" "$WORK/release/${file##*/}" || die "two builds of the same programs differ"; done
VERSION=$VERSION.1 packages "$WORK/newer"

# Runs the image of baremetald with the configuration, the modes of files and the limits that deploy/kubernetes gives it. Version 2 of control groups
# is mounted alone, because crun refuses both versions together.
in_container() { # IMAGE
  local pod=$WORK/pod image process tries url=https://baremetald.bedplate.svc:6385/v1/nodes
  container() { podman --root "$WORK/containers" --runroot "$WORK/containers-run" --storage-driver vfs --cgroup-manager cgroupfs --events-backend none "$@"; }
  answers() {
    nsenter --target "$process" --net curl -sf --cacert "$pod/tls/tls.crt" --resolve baremetald.bedplate.svc:6385:127.0.0.1 -u admin:secret "$url"
  }
  mount --make-rprivate /
  umount -R /sys/fs/cgroup
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  mkdir -p "$pod"/{tls,users,state}
  cp "$ROOT/deploy/kubernetes/baremetald.toml" "$pod/"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=baremetald \
    -addext subjectAltName=DNS:baremetald.bedplate.svc -keyout "$pod/tls/tls.key" -out "$pod/tls/tls.crt" 2>/dev/null
  htpasswd -bnBC 4 admin secret >"$pod/users/htpasswd"
  chown -R 0:65532 "$pod"
  chmod 440 "$pod"/{tls,users}/*
  chmod 2775 "$pod/state"
  image=$(container load --quiet --input "$1")
  container run --detach --name baremetald --network none --cgroups disabled --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 --read-only \
    --cap-drop all --security-opt no-new-privileges --volume "$pod/baremetald.toml:/etc/bedplate/baremetald.toml:ro" \
    --volume "$pod/users:/etc/bedplate/users:ro" --volume "$pod/tls:/etc/bedplate/tls:ro" --volume "$pod/state:/var/lib/baremetald" \
    "${image##* }" --config /etc/bedplate/baremetald.toml >/dev/null
  for _ in first again; do
    process=$(container inspect --format '{{.State.Pid}}' baremetald)
    for ((tries = 0; tries < 300; tries++)); do
      ! answers >"$WORK/answer" || break
      sleep 0.2
    done
    [ "$(cat "$WORK/answer")" = '{"nodes":[]}' ] || { container logs baremetald; return 1; }
    [ "$(awk '/^(Uid|CapEff):/ {print $2}' "/proc/$process/status" | paste -sd' ')" = "65532 0000000000000000" ]
    container stop --time 10 baremetald >/dev/null
    [ "$(container inspect --format '{{.State.ExitCode}}' baremetald)" = 0 ]
    container start baremetald >/dev/null
  done
  container rm --force baremetald >/dev/null
}
export -f in_container
export WORK ROOT
unshare --mount bash -euo pipefail -c 'in_container "$1"' bash "$WORK"/release/bedplate-baremetald_*.oci.tar >&2 || die "the image of baremetald does not work"
say "the image of baremetald works"

# The functions of the scripts that run on a machine.
FUNCTIONS='
set -x
PS4="$BASH_SOURCE: "
PACKAGES="bedplate-baremetald bedplate-clusterd bedplate-console bedplate bedplate-ramdisk"
UNITS="baremetald clusterd consoled"
get() { DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" </dev/null; }
# The only list that apt can read here is that of our repository.
read_list() { get -o Dir::Etc::sourcelist=/etc/apt/sources.list.d/bedplate.sources -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0 update; }
status() { curl -s -o /dev/null -w "%{http_code}" "$@"; }
as_admin() { BEDPLATE_USER=admin BEDPLATE_PASSWORD_FILE=/etc/bedplate/admin.password "$@"; }
pid() { systemctl show --property MainPID --value "$1"; }
property() { systemctl show --property "$2" --value "$1"; }
'

INSTALL='
# The state of a unit with a dynamic user, as it was before there were packages.
systemd-run --quiet --wait --property DynamicUser=yes --property User=clusterd --property StateDirectory=clusterd \
  sh -c "echo earlier >/var/lib/clusterd/earlier"
test -L /var/lib/clusterd
install -m 644 /dev/stdin /etc/apt/sources.list.d/bedplate.sources <<END
Types: deb
URIs: file:/srv/packages
Suites: ./
Signed-By: /srv/packages/bedplate.asc
END
read_list
get install -y --no-install-recommends $PACKAGES ipxe
for package in $PACKAGES; do test "$(dpkg-query -W -f "\${Version}" $package)" = "$VERSION"; done

for unit in $UNITS; do
  systemctl is-active $unit
  systemctl is-enabled $unit
  test "$(ps -o user= -p "$(pid $unit)")" = $unit
  test "$(id -u $unit)" -lt 1000
done
systemd-analyze security --no-pager --threshold=20 $UNITS >/tmp/security || { cat /tmp/security; exit 1; }
systemd-analyze verify --man=no baremetald.service clusterd.service consoled.service
test ! -L /var/lib/clusterd
test "$(stat -c %U:%a /var/lib/clusterd /var/lib/clusterd/seal.keys | paste -sd" ")" = "clusterd:700 clusterd:600"
test "$(cat /var/lib/clusterd/earlier)" = earlier
test "$(stat -c %U:%a /etc/bedplate/htpasswd /etc/bedplate/admin.password | paste -sd" ")" = "root:600 root:600"

test "$(status http://127.0.0.1:6385/v1/nodes)" = 401
test "$(status -u "admin:$(cat /etc/bedplate/admin.password)" http://127.0.0.1:6385/v1/nodes)" = 200
test "$(status -u "admin:$(cat /etc/bedplate/admin.password)" http://127.0.0.1:9511/v1/clusters)" = 200
test "$(status http://127.0.0.1:9510/login)" = 200
printf "name,mac,bmc_type,bmc_address\nkept,52:54:00:aa:01:01,fake,127.0.0.1\n" >/tmp/r1.csv
as_admin bedplate rack enroll /tmp/r1.csv
as_admin bedplate doctor
zcat /usr/share/man/man1/bedplate-rack-enroll.1.gz | grep -q "^\.SH OPTIONS"
zcat /usr/share/man/man8/baremetald.8.gz | grep -q "^\.SH FILES"
grep -q bedplate /usr/share/bash-completion/completions/bedplate /usr/share/zsh/vendor-completions/_bedplate
test -d /var/lib/bedplate/images

# The network for machines, as the guide enables it.
sed -i "/^#\[provisioning\]/,$ s/^#\([^ ]\)/\1/" /etc/bedplate/baremetald.toml
systemctl restart baremetald
ss -Hlun | grep -q "10.0.0.1:69 "
test -s /usr/share/bedplate/ramdisk/kernel
'

UPGRADE='
systemctl disable --now consoled
before=$(pid baremetald)
read_list
get upgrade -y
for package in $PACKAGES; do test "$(dpkg-query -W -f "\${Version}" $package)" = "$VERSION.1"; done
test "$(pid baremetald)" != "$before"
systemctl is-active baremetald clusterd
as_admin bedplate node explain kept
grep -q "^\[provisioning\]" /etc/bedplate/baremetald.toml
test "$(property consoled ActiveState)" = inactive
'

REMOVE='
get remove -y bedplate-baremetald
test "$(property baremetald ActiveState)" = inactive
test ! -e /usr/bin/baremetald
test -e /var/lib/baremetald/baremetal.db
get install -y bedplate-baremetald
as_admin bedplate node explain kept
for unit in $UNITS; do
  if journalctl --quiet --unit $unit | grep -E "panicked|ERROR"; then exit 1; fi
done

get purge -y $PACKAGES
for left in /etc/bedplate /var/lib/{,private/}{baremetald,clusterd} /var/lib/bedplate /usr/share/bedplate /usr/bin/{baremetald,clusterd,consoled,bedplate}; do test ! -e $left; done
for unit in $UNITS; do test "$(property $unit LoadState)" = not-found; done
test -z "$(dpkg-query -W -f "\${db:Status-Abbrev} \${Package}\n" "bedplate*" 2>/dev/null | grep -v ^un)"
'

repository() { # FOLDER: what apt of the machines finds
  mkdir -p "$WORK/repository"
  rm -f "$WORK"/repository/*
  cp "$1"/* "$WORK/repository/"
  [ -f "$1/InRelease" ] || "$ROOT/deploy/packages/repository.sh" "$WORK/repository" 'Bedplate test'
}
for suite; do
  machine=$WORK/machine-$suite
  mkdir "$machine"
  repository "$WORK/release"
  export HOST_SUITE=$suite
  "$HERE/host.sh" up "$machine" "/srv/packages=$WORK/repository"
  on_machine() { # NAME SCRIPT
    printf '%s\n' "VERSION=$VERSION" "$FUNCTIONS" "$2" | "$HERE/host.sh" run "$machine" / >"$WORK/log" 2>&1 ||
      { cat "$WORK/log" >&2; die "$suite: $1 failed"; }
    say "$suite: $1 passed"
  }
  on_machine install "$INSTALL"
  repository "$WORK/newer"
  on_machine upgrade "$UPGRADE"
  on_machine "remove and purge" "$REMOVE"
  "$HERE/host.sh" down "$machine"
done
