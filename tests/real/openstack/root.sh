# shellcheck shell=bash
# root.sh - makes the root of openstack.sh's daemons: Debian's packages, unpacked and configured. Sourced.
PACKAGES=(bash dash base-files openssl coreutils sed grep gawk findutils procps util-linux hostname iproute2
  keystone placement-api glance-api nova-api nova-conductor nova-scheduler nova-compute neutron-server octavia-api octavia-worker
  cinder-api cinder-scheduler cinder-volume
  designate-api designate-central designate-worker designate-mdns designate-producer
  swift-proxy swift-account swift-container swift-object
  bind9 bind9-utils bind9-dnsutils rabbitmq-server mariadb-server memcached uwsgi-core uwsgi-plugin-python3 qemu-utils genisoimage
  python3-openstackclient python3-octaviaclient python3-designateclient)
INSIDE=(PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 PYTHONPATH=/usr/local/bedplate PYTHONWARNINGS=ignore)

inroot() { # [NAME=VALUE...] COMMAND...
  chroot "$ROOT" /usr/bin/env -i "${INSIDE[@]}" "$@"
}

# ours_only COMMAND...: runs apt as if this host had no packages, so that apt fetches all dependencies, including libc
ours_only() {
  apt -o Dir::State::status="$CLOUD/packages/status" -o Dir::Cache::archives="$CLOUD/packages" -o Debug::NoLocking=1 "$@"
}

unpack_root() {
  [ "$(cat "$ROOT/.complete" 2>/dev/null)" != "${PACKAGES[*]}" ] || return 0
  local folder
  unmount_root
  rm -rf --one-file-system "$ROOT"
  rm -rf "$CLOUD"/baseline*
  mkdir -p "$CLOUD/packages/partial" "$ROOT"
  : >"$CLOUD/packages/status"
  say "fetching OpenStack"
  know_packages
  ours_only -y --no-install-recommends --download-only install "${PACKAGES[@]}"
  say "unpacking $(find "$CLOUD/packages" -name '*.deb' | wc -l) packages"
  for folder in bin sbin lib lib64; do
    mkdir -p "$ROOT/usr/$folder"
    ln -sfn "usr/$folder" "$ROOT/$folder"
  done
  # shellcheck disable=SC2016 # expanded by the inner shell
  find "$CLOUD/packages" -name '*.deb' -print0 | xargs -0 -P"$(nproc)" -n1 sh -c '
    dpkg-deb --fsys-tarfile "$1" | tar -x -C "$0" --keep-directory-symlink -f - \
      --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale' "$ROOT"
  finish_root
  echo "${PACKAGES[*]}" >"$ROOT/.complete"
  rm -rf "$CLOUD/packages"
}

# Adds packages that are only Python, and their dependencies are there already.
add_python() { # PACKAGE...
  local folder
  folder=$(unpacked "$@")
  cp -rn "$folder/usr/lib/python3/dist-packages/." "$ROOT/usr/lib/python3/dist-packages/"
}

finish_root() { # does what the packages' own scripts would have done, as far as it matters here
  local etc=$ROOT/etc folder
  printf '%s\n' root:x:0:0:root:/root:/bin/bash daemon:x:1:1::/:/bin/false bind:x:53:53::/:/bin/false \
    nobody:x:65534:65534::/:/bin/false >"$etc/passwd"
  printf '%s\n' root:x:0: daemon:x:1: tty:x:5: disk:x:6: kvm:x:36: bind:x:53: nogroup:x:65534: >"$etc/group"
  printf '%s\n' 'passwd: files' 'group: files' 'shadow: files' 'hosts: files' 'services: files' 'protocols: files' >"$etc/nsswitch.conf"
  echo '127.0.0.1 localhost' >"$etc/hosts"
  : >"$etc/resolv.conf"
  ln -sfn gawk "$ROOT/usr/bin/awk"
  ln -sfn dash "$ROOT/usr/bin/sh"
  # numpy's libraries are alternatives, which no package script has set up
  { find "$ROOT"/usr/lib/x86_64-linux-gnu/{blas,lapack} -maxdepth 0 2>/dev/null || true; } |
    sed "s#^$ROOT##" >"$etc/ld.so.conf.d/alternatives.conf"
  ldconfig -r "$ROOT"
  # oslo.log 5.0.0 deadlocks the services that do not use eventlet, octavia-worker among them (Launchpad 1983863)
  sed -i 's/^    _fix_eventlet_logging()$/    pass/' "$ROOT/usr/lib/python3/dist-packages/oslo_log/log.py"
  # Octavia 11 without a jobboard forgets the listeners in a request for a load balancer, and they stay PENDING_CREATE
  sed -i "s/^                name=sf_name + '-' + constants.MARK_LB_ACTIVE_INDB,$/&\n                mark_subobjects=True,/" \
    "$ROOT/usr/lib/python3/dist-packages/octavia/controller/worker/v2/flows/load_balancer_flows.py"
  for folder in run lock; do
    [ -L "${ROOT:?}/var/$folder" ] || { rm -rf "${ROOT:?}/var/$folder" && ln -s /run "$ROOT/var/$folder"; }
  done
  mkdir -p "$ROOT"/{state,log,proc,sys,dev,run,tmp,root}
  chmod 1777 "$ROOT/tmp"
}

mounted() { mountpoint -q "$ROOT/$1"; }
mount_root() {
  mounted proc || mount -t proc proc "$ROOT/proc"
  mounted sys || mount --rbind /sys "$ROOT/sys"
  mounted dev || mount --rbind /dev "$ROOT/dev"
  # unmounts inside must not propagate to the host
  mount --make-rslave "$ROOT/sys"
  mount --make-rslave "$ROOT/dev"
  mounted run || mount -t tmpfs tmpfs "$ROOT/run"
  mounted state || mount --bind "$STATE" "$ROOT/state"
  mounted log || mount --bind "$LOG" "$ROOT/log"
  mkdir -p "$ROOT"/run/{lock,named}
}
unmount_root() {
  local folder
  for folder in log state run dev sys proc; do ! mounted $folder || umount -R -l "$ROOT/$folder"; done
}

# configure: writes the configuration in etc/ with the address filled in. OpenStack services get shared.conf as well.
configure() {
  local file target
  mkdir -p "$STATE"/{lock,glance/{images,tasks,staging},keystone,nova,neutron,octavia,designate,cinder,named,rabbit,swift/node/d1}
  rm -rf "$ROOT/usr/local/bedplate"
  mkdir -p "$ROOT/usr/local"
  cp -r "$HERE/python" "$ROOT/usr/local/bedplate"
  while IFS= read -r file; do
    target=$ROOT/etc/$file
    mkdir -p "$(dirname "$target")"
    case $file in
      */keystone.conf | */placement.conf | */glance-api.conf | */nova.conf | */neutron.conf | */octavia.conf | */cinder.conf | \
        */designate.conf)
        cat "$HERE/etc/$file" "$HERE/etc/shared.conf" ;;
      *) cat "$HERE/etc/$file" ;;
    esac | filled_in >"$target"
  done < <(cd "$HERE/etc" && find . -type f ! -name 'shared.conf' ! -name 'service-user.conf' -printf '%P\n')
  cp "$ROOT"/usr/share/glance-common/{glance-api-paste.ini,schema-image.json} "$ROOT/etc/glance/"
  for target in nova neutron designate cinder; do cp "$ROOT/usr/share/$target-common/api-paste.ini" "$ROOT/etc/$target/"; done
}
filled_in() {
  sed -e "/^@SERVICE_USER@\$/ {
    r $HERE/etc/service-user.conf
    d
  }" | sed -e "s#@ADDRESS@#$ADDRESS#g; s#@PASSWORD@#$PASSWORD#g; s#@MECHANISMS@#$MECHANISMS#g"
}
