#!/usr/bin/env bash
# image.sh - makes an image that applies an Ignition config at its first boot, once, as Fedora CoreOS does; prints its folder.
#
#   disk.raw         one ext4 file system, sparse; no boot loader
#   vmlinuz, initrd  boot it with: root=LABEL=root ignition.firstboot=1 ignition.platform.id=openstack
#
# The image is Debian trixie with Ignition (spec 3.0 to 3.3) in an initrd of dracut, systemd, containerd and curl. dracut/ is what Debian's
# Ignition needs around it, tree/ makes Debian wait for its first boot. The cache keeps the image under the hash of this folder and the
# packages under the hash of their list. Needs root, and a minute.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../debian.sh disable=SC1091
. "$HERE/../debian.sh"
# shellcheck source-path=SCRIPTDIR source=../suites.sh disable=SC1091
. "$HERE/../suites.sh"

SIZE=3G
PACKAGES=systemd,systemd-sysv,dbus,udev,kmod,iproute2,curl,ca-certificates,containerd,runc,e2fsprogs,linux-image-cloud-amd64,dracut,dracut-network,ignition
# Only the drivers of virtual machines are put into the initrd.
DRIVERS='virtio_pci virtio_blk virtio_net af_packet ext4 isofs nls_iso8859-1'
CACHE=$BEDPLATE_CACHE/fcos
hash_of() { sha256sum | cut -c1-16; }
TREE=$CACHE/packages-$(printf '%s' "$PACKAGES" | hash_of)
IMAGE=$CACHE/image-$(tar -C "$HERE" --sort=name --mtime=@0 --owner=0 --group=0 -cf - . | hash_of)

make_tree() {
  say "making $TREE"
  rm -rf "$CACHE"/packages-*
  # dracut makes the initrd below.
  INITRD=No mmdebstrap --quiet --variant=minbase --include="$PACKAGES" --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    trixie "$TREE.new" "deb [signed-by=$KEYRING] $(debian_mirror) trixie main" >&2
  mv "$TREE.new" "$TREE"
}

make_image() {
  local root=$IMAGE.new/root version
  say "making $IMAGE"
  rm -rf "$CACHE"/image-*
  mkdir "$IMAGE.new"
  cp -a "$TREE" "$root"
  cp -r "$HERE/tree/." "$root/"
  cp -r "$HERE/dracut" "$root/usr/lib/dracut/modules.d/31fcos"
  rm -f "$root/etc/hostname"
  # Ignition sets SELinux labels on its files. This image has none, so the list of labels is empty.
  mkdir -p "$root/etc/selinux/none/contexts/files"
  : >"$root/etc/selinux/none/contexts/files/file_contexts"

  version=$(ls "$root/usr/lib/modules")
  # A mount namespace, so that /proc and /dev are unmounted at its end. No compression, because a machine without hardware virtualisation
  # would take long to decompress the initrd.
  # shellcheck disable=SC2016 # the inner shell expands them
  unshare -m bash -euc 'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; mount -t tmpfs tmpfs "$0/tmp"
    SYSTEMD_LOG_LEVEL=warning chroot "$0" \
      dracut --quiet --force --no-hostonly --no-compress --add "ignition fcos" --drivers "$2" /boot/initrd "$1"' \
    "$root" "$version" "$DRIVERS" >&2
  mv "$root/boot/initrd" "$IMAGE.new/initrd"
  mv "$root/boot/vmlinuz-$version" "$IMAGE.new/vmlinuz"
  mke2fs -q -t ext4 -L root -d "$root" "$IMAGE.new/disk.raw" "$SIZE" >&2
  rm -rf "$root"
  mv "$IMAGE.new" "$IMAGE"
}

mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock 9
if [ ! -d "$IMAGE" ]; then
  is_root || die "needs root"
  needs mmdebstrap mke2fs unshare
  [ -d "$TREE" ] || make_tree
  make_image
fi
printf '%s\n' "$IMAGE"
