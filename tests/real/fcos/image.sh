#!/usr/bin/env bash
# image.sh - makes an image that becomes on its first boot what an Ignition config says, as Fedora CoreOS does, once; prints its folder.
#
#   disk.raw         one ext4 file system, sparse; no boot loader
#   vmlinuz, initrd  boot it with: root=LABEL=root ignition.firstboot=1 ignition.platform.id=openstack
#
# It is Debian trixie: its Ignition (spec 3.0 to 3.3) in an initrd of dracut's, systemd, containerd, curl. dracut/ is what Debian's Ignition
# needs around it, tree/ what makes Debian an image that waits for its first boot. The image is kept in the cache under the hash of this
# folder, the packages under that of their list. Needs root, and a minute.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../debian.sh disable=SC1091
. "$HERE/../debian.sh"
# shellcheck source-path=SCRIPTDIR source=../suites.sh disable=SC1091
. "$HERE/../suites.sh"

SIZE=3G
PACKAGES=systemd,systemd-sysv,dbus,udev,kmod,iproute2,curl,ca-certificates,containerd,runc,e2fsprogs,linux-image-cloud-amd64,dracut,dracut-network,ignition
# Drivers of what a virtual machine has: no others are put into the initrd.
DRIVERS='virtio_pci virtio_blk virtio_net af_packet ext4 isofs nls_iso8859-1'
CACHE=$BEDPLATE_CACHE/fcos
hash_of() { sha256sum | cut -c1-16; }
TREE=$CACHE/packages-$(printf '%s' "$PACKAGES" | hash_of)
IMAGE=$CACHE/image-$(tar -C "$HERE" --sort=name --mtime=@0 --owner=0 --group=0 -cf - . | hash_of)

make_tree() {
  say "making $TREE"
  rm -rf "$CACHE"/packages-*
  # The initrd is made below, by dracut.
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
  # Ignition gives labels to what it writes, of which there are none here.
  mkdir -p "$root/etc/selinux/none/contexts/files"
  : >"$root/etc/selinux/none/contexts/files/file_contexts"

  version=$(ls "$root/usr/lib/modules")
  # In a mount namespace of its own, with which /proc and /dev go. Not compressed: a machine without hardware virtualisation would be
  # long about it.
  # shellcheck disable=SC2016 # the inner shell's words
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
