#!/usr/bin/env bash
# tiny-image.sh [FOLDER] - tiny.raw, tiny.raw.gz and tiny.qcow2: a 48 MiB disk that boots by BIOS and by UEFI, to install in tests.
#
# Its init prints "DISK-BOOTED BIOS" or "DISK-BOOTED UEFI" on the serial console. The disk has one FAT16 partition: syslinux for BIOS,
# systemd-boot for UEFI, Debian's cloud kernel, an initramfs with only busybox. The partition table is an MBR; tiny-gpt.qcow2 has a GPT and
# boots by UEFI alone. Needs no root and no loop device, and installs nothing:
# programs and kernel are unpacked in the cache. Takes three seconds, plus the kernel's download once.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=debian.sh disable=SC1091
. "$HERE/debian.sh"
FOLDER=${1:-$BEDPLATE_CACHE/images}
SIZE_MIB=48 START=2048                            # the partition's first sector
SECTORS=$((SIZE_MIB * 2048 - START)) OFFSET=$((START * 512))
KERNEL_ARGUMENTS='console=ttyS0 quiet rdinit=/init'
needs apt-get dpkg-deb gzip qemu-img

newest_kernel() { # prints the newest cloud kernel, which has virtio built in
  apt-cache depends linux-image-cloud-amd64 | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ {print $2; exit}'
}
TOOLS=$(unpacked busybox-static cpio fdisk syslinux syslinux-common mtools dosfstools systemd-boot-efi)
KERNEL=$(unpacked "$(newest_kernel)")
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export PATH=$TOOLS/usr/bin:$TOOLS/usr/sbin:$TOOLS/bin:$TOOLS/sbin:$PATH MTOOLS_SKIP_CHECK=1
IMAGE=$WORK/tiny.raw PARTITION=(-i "$WORK/tiny.raw@@$OFFSET")

initramfs() {
  local root=$WORK/root
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
while :; do sh </dev/console >/dev/console 2>&1; sleep 1; done
S
  chmod +x "$root/init"
  (cd "$root" && find . | sort | cpio -o -H newc -R 0:0 --quiet --reproducible) | gzip -6n
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

partition_table
file_system
with_gpt "$WORK/gpt.raw"
qemu-img convert -O qcow2 -c "$WORK/gpt.raw" "$WORK/tiny-gpt.qcow2"
gzip -1n <"$IMAGE" >"$WORK/tiny.raw.gz"
qemu-img convert -O qcow2 -c "$IMAGE" "$WORK/tiny.qcow2"
mkdir -p "$FOLDER"
mv "$WORK"/tiny* "$FOLDER/"
