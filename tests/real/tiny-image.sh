#!/usr/bin/env bash
# tiny-image.sh [FOLDER] - tiny.raw, tiny.raw.gz and tiny.qcow2: a 48 MiB disk that boots by BIOS and by UEFI, to install in tests.
#
# Its init prints "DISK-BOOTED BIOS" or "DISK-BOOTED UEFI" on the serial console. The disk has one FAT16 partition: syslinux for BIOS,
# systemd-boot for UEFI, Debian's cloud kernel, an initramfs with only busybox. The partition table is an MBR; tiny-gpt.qcow2 has a GPT and
# boots by UEFI alone. tiny-mirror.qcow2 has a GPT with a second partition; its init starts the RAID that the disk is written to, and prints
# "MIRROR-CONTENT 2/1 on SERIAL": that the second partition can be read, by how many of its disks, and the first disk.
# tiny-signed.qcow2 boots by UEFI with Debian's signed shim, GRUB and kernel; its init also prints "SECURE-BOOT" if Secure Boot is on.
# tiny-partition.raw is the image of a root file system, as debootstrap would make one: ext4 with a kernel, the menu of GRUB, and Debian's
# signed loaders in /boot/efi/EFI. Its init mounts the file system, prints "ROOT-MOUNTED" and a text in it, and "PARTITION LABEL" for each other
# partition that it finds by the labels of ironic-python-agent, then "PARTITIONS-END".
# Needs no root and no loop device, and installs nothing: programs and kernel are unpacked in the cache. Takes three seconds, plus the
# kernel's download once.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=debian.sh disable=SC1091
. "$HERE/debian.sh"
FOLDER=${1:-$BEDPLATE_CACHE/images}
SIZE_MIB=48 START=2048                            # the partition's first sector
SECTORS=$((SIZE_MIB * 2048 - START)) OFFSET=$((START * 512))
KERNEL_ARGUMENTS='console=ttyS0 no_timer_check quiet rdinit=/init'
ROOT_ID=5bf1c9ab-94a4-4d1c-8d1e-3f2f6a2f9d10     # of the file system in tiny-partition.raw
needs apt-get dpkg-deb gzip qemu-img mke2fs iconv

newest_kernel() { # prints the newest cloud kernel
  apt-cache depends linux-image-cloud-amd64 | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ {print $2; exit}'
}
TOOLS=$(unpacked busybox-static mdadm libc6 libudev1 cpio fdisk syslinux syslinux-common mtools dosfstools systemd-boot-efi shim-signed \
  grub-efi-amd64-signed)
KERNEL=$(unpacked "$(newest_kernel)")
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export PATH=$TOOLS/usr/bin:$TOOLS/usr/sbin:$TOOLS/bin:$TOOLS/sbin:$PATH MTOOLS_SKIP_CHECK=1
IMAGE=$WORK/tiny.raw PARTITION=(-i "$WORK/tiny.raw@@$OFFSET")

initramfs() { # [mirror|root_mounter]
  local root=$WORK/root${1:-}
  mkdir -p "$root"/{bin,proc,sys,dev}
  cp "$(command -v busybox)" "$root/bin/busybox"
  ln -s busybox "$root/bin/sh"
  cat >"$root/init" <<'S'
#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
echo "DISK-BOOTED $([ -d /sys/firmware/efi ] && echo UEFI || echo BIOS)"
! dmesg | grep -q 'Secure boot enabled' || echo SECURE-BOOT
[ ! -e /more ] || . /more
while :; do sh </dev/console >/dev/console 2>&1; sleep 1; done
S
  chmod +x "$root/init"
  [ -z "${1:-}" ] || "$1" "$root"
  (cd "$root" && find . | sort | cpio -o -H newc -R 0:0 --quiet --reproducible) | gzip -6n
}

MIRROR_MODULES='virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk md-mod raid1' # each after what it needs
mirror() { # FOLDER   adds mdadm and the kernel's RAID to an initramfs
  mkdir -p "$1"/lib64 "$1"/lib/x86_64-linux-gnu "$1"/run
  cp "$TOOLS/sbin/mdadm" "$1/bin/"
  cp -L "$TOOLS"/lib/x86_64-linux-gnu/{libc.so.6,ld-linux-x86-64.so.2} "$1/lib/x86_64-linux-gnu/"
  cp -L "$(find "$TOOLS" -name libudev.so.1 | head -n 1)" "$1/lib/x86_64-linux-gnu/"
  ln -s ../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 "$1/lib64/"
  for module in $MIRROR_MODULES; do cp "$KERNEL"/lib/modules/*/kernel/drivers/*/"$module.ko" "$1/lib/"; done
  cat >"$1/more" <<S
for module in $MIRROR_MODULES; do insmod /lib/\$module.ko; done
MDADM_NO_UDEV=1 mdadm --assemble --scan --run >/run/mdadm.log 2>&1
for array in /sys/block/md*; do
  name=\${array##*/}
  content=\$(dd if=/dev/\$name bs=1M skip=$SIZE_MIB count=1 2>/dev/null | head -c 14)
  [ "\$content" != MIRROR-CONTENT ] ||
    echo "\$content \$(grep -A1 "^\$name " /proc/mdstat | sed -n 's|.*\[\([0-9]*/[0-9]*\)\].*|\1|p') on \$(cat /sys/block/vda/serial)"
done
S
}

little_endian() { printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24)); }
partition_table() { # writes one bootable entry of type ef (EFI system partition), which syslinux's MBR also boots
  truncate -s ${SIZE_MIB}M "$IMAGE"
  dd if="$TOOLS/usr/lib/syslinux/mbr/mbr.bin" of="$IMAGE" bs=440 count=1 conv=notrunc status=none
  # shellcheck disable=SC2059 # the format is the data
  printf "\\x80\\xfe\\xff\\xff\\xef\\xfe\\xff\\xff$(little_endian $START)$(little_endian $SECTORS)" |
    dd of="$IMAGE" bs=1 seek=446 conv=notrunc status=none
  printf '\x55\xaa' | dd of="$IMAGE" bs=1 seek=510 conv=notrunc status=none
}

file_system() { # -F 16: mkfs.vfat would take FAT32 for the offset and stop
  mkfs.vfat -F 16 -n TINY --offset $START "$IMAGE" $((SECTORS / 2)) >/dev/null
  mmd "${PARTITION[@]}" ::/EFI ::/EFI/BOOT ::/loader ::/loader/entries
  mcopy "${PARTITION[@]}" "$KERNEL"/boot/vmlinuz-* ::/linux
  initramfs | mcopy "${PARTITION[@]}" - ::/initrd.gz
  mcopy "${PARTITION[@]}" "$TOOLS/usr/lib/systemd/boot/efi/systemd-bootx64.efi" ::/EFI/BOOT/BOOTX64.EFI
  printf 'timeout 0\n' | mcopy "${PARTITION[@]}" - ::/loader/loader.conf
  printf 'title tiny\nlinux /linux\ninitrd /initrd.gz\noptions %s\n' "$KERNEL_ARGUMENTS" |
    mcopy "${PARTITION[@]}" - ::/loader/entries/tiny.conf
  printf 'SERIAL 0 115200\nDEFAULT tiny\nPROMPT 0\nLABEL tiny\n LINUX /linux\n INITRD /initrd.gz\n APPEND %s\n' "$KERNEL_ARGUMENTS" |
    mcopy "${PARTITION[@]}" - ::/syslinux.cfg
  syslinux --install -t $OFFSET "$IMAGE"
}

# ironic-python-agent finds the EFI system partition by an id that only a GPT has.
with_gpt() { # writes the same partition to another disk
  truncate -s $((SIZE_MIB + 1))M "$1"
  printf 'label: gpt\nstart=%d, size=%d, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B\n' $START $SECTORS | sfdisk -q "$1"
  dd if="$IMAGE" of="$1" bs=1M skip=1 seek=1 conv=notrunc status=none
}

# The firmware starts the shim, which is signed by Microsoft. The shim starts GRUB, and GRUB the kernel; Debian signed both.
with_signatures() { # DISK   as with_gpt, with another boot loader
  local IMAGE=$WORK/signatures.raw PARTITION=(-i "$WORK/signatures.raw@@$OFFSET")
  cp "$WORK/tiny.raw" "$IMAGE"
  mcopy -o "${PARTITION[@]}" "$TOOLS/usr/lib/shim/shimx64.efi.signed" ::/EFI/BOOT/BOOTX64.EFI
  mcopy "${PARTITION[@]}" "$TOOLS/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed" ::/EFI/BOOT/grubx64.efi
  mmd "${PARTITION[@]}" ::/EFI/debian
  printf 'linux /linux %s\ninitrd /initrd.gz\nboot\n' "$KERNEL_ARGUMENTS" | mcopy "${PARTITION[@]}" - ::/EFI/debian/grub.cfg
  with_gpt "$1"
}

with_mirror() { # DISK   as with_gpt, with another initramfs and a second partition
  truncate -s $((SIZE_MIB + 2))M "$1"
  printf 'label: gpt\nstart=%d, size=%d, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B\nstart=%d, size=2048, type=L\n' \
    $START $SECTORS $((SIZE_MIB * 2048)) | sfdisk -q "$1"
  initramfs mirror | mcopy -o "${PARTITION[@]}" - ::/initrd.gz
  dd if="$IMAGE" of="$1" bs=1M skip=1 seek=1 conv=notrunc status=none
  printf MIRROR-CONTENT | dd of="$1" bs=1M seek=$SIZE_MIB conv=notrunc status=none
}

ROOT_MODULES='virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk crc16 mbcache jbd2 crc32c_generic libcrc32c ext4'
root_mounter() { # FOLDER   adds to an initramfs what mounts the root file system
  local module
  mkdir -p "$1"/{lib,root,run}
  for module in $ROOT_MODULES; do
    find "$KERNEL"/lib/modules/*/kernel -name "$module.ko" -exec cp {} "$1/lib/" \;
  done
  cat >"$1/more" <<S
for module in $ROOT_MODULES; do insmod /lib/\$module.ko; done 2>/dev/null
until mount -t ext4 -o ro "\$(findfs UUID=$ROOT_ID)" /root; do sleep 1; done
echo "ROOT-MOUNTED \$(cat /root/etc/motd)"
for label in efi-part ephemeral0 swap1 config-2; do
  ! findfs LABEL=\$label >/run/device 2>/dev/null || echo "PARTITION \$label"
done
echo PARTITIONS-END
S
}

# GRUB of the EFI system partition only finds the file system; its menu is in the file system, as Debian's grub-install makes them.
partition_image() { # IMAGE
  local tree=$WORK/tree loaders=$WORK/tree/boot/efi/EFI
  mkdir -p "$tree"/{etc,boot/grub,dev,proc,run,sys} "$loaders"/{BOOT,debian}
  echo 'the image of a partition' >"$tree/etc/motd"
  cp "$KERNEL"/boot/vmlinuz-* "$tree/boot/vmlinuz"
  initramfs root_mounter >"$tree/boot/initrd.img"
  printf '%s\n' 'set timeout=0' 'insmod part_gpt' 'insmod ext2' "search --no-floppy --fs-uuid --set=root $ROOT_ID" \
    'menuentry "tiny" {' " linux /boot/vmlinuz root=UUID=$ROOT_ID ro $KERNEL_ARGUMENTS" ' initrd /boot/initrd.img' '}' >"$tree/boot/grub/grub.cfg"
  cp "$TOOLS/usr/lib/shim/shimx64.efi.signed" "$loaders/BOOT/BOOTX64.EFI"
  cp "$TOOLS/usr/lib/shim/shimx64.efi.signed" "$loaders/debian/shimx64.efi"
  printf 'shimx64.efi,debian,,This is the boot entry for debian\n' | iconv -t UTF-16 >"$loaders/debian/BOOTX64.CSV"
  cp "$TOOLS/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed" "$loaders/debian/grubx64.efi"
  cp "$loaders/debian/grubx64.efi" "$loaders/BOOT/grubx64.efi"
  # shellcheck disable=SC2016 # GRUB's variables
  printf 'search.fs_uuid %s root\nset prefix=($root)/boot/grub\nconfigfile $prefix/grub.cfg\n' $ROOT_ID >"$loaders/debian/grub.cfg"
  mke2fs -q -t ext4 -L cloudimg-rootfs -U $ROOT_ID -d "$tree" "$1" 80M >/dev/null
}

partition_table
file_system
with_gpt "$WORK/gpt.raw"
qemu-img convert -O qcow2 -c "$WORK/gpt.raw" "$WORK/tiny-gpt.qcow2"
gzip -1n <"$IMAGE" >"$WORK/tiny.raw.gz"
qemu-img convert -O qcow2 -c "$IMAGE" "$WORK/tiny.qcow2"
with_signatures "$WORK/signed.raw"
qemu-img convert -O qcow2 -c "$WORK/signed.raw" "$WORK/tiny-signed.qcow2"
partition_image "$WORK/tiny-partition.raw"
# The mirror's initramfs replaces the other in the file system, so this image is the last.
with_mirror "$WORK/mirror.raw"
qemu-img convert -O qcow2 -c "$WORK/mirror.raw" "$WORK/tiny-mirror.qcow2"
mkdir -p "$FOLDER"
mv "$WORK"/tiny* "$FOLDER/"
