#!/usr/bin/env bash
# arm.sh - makes everything that a machine with 64-bit ARM boots, and prints its folder: iPXE of Debian 13, our ramdisk, its kernel and a CD of
# both. Also makes the image tiny-arm.qcow2, a 64 MiB disk that prints "DISK-BOOTED UEFI" on the serial console.
#
# Needs QEMU and firmware for the machine, and a cross compiler for the agent (images/ramdisk/agent.sh); root installs the packages.
#   AGENT  the static agent; cargo builds it by default
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
"$HERE/packages.sh" qemu-system-arm qemu-efi-aarch64 qemu-utils gcc-aarch64-linux-gnu libc6-dev-arm64-cross
[ -n "${AGENT:-}" ] || rustup -q target add aarch64-unknown-linux-musl >&2
export ARCHITECTURE=arm64
# shellcheck source-path=SCRIPTDIR source=../../images/ramdisk/lib.sh
. "$HERE/../../images/ramdisk/lib.sh"
# shellcheck source-path=SCRIPTDIR source=suites.sh disable=SC1091
. "$HERE/suites.sh"
FOLDER=$CACHE/arm SIZE_MIB=64 START=2048 # the first sector of the only partition
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir -p "$FOLDER" "$CACHE/images"

loader() { # this Debian's iPXE has no build for ARM
  [ ! -f "$FOLDER/ipxe-arm64.efi" ] || return 0
  read_suites "$WORK/apt" trixie
  (cd "$WORK" && suite_get download ipxe)
  dpkg-deb -x "$WORK"/ipxe_*.deb "$WORK/ipxe"
  cp "$WORK/ipxe/usr/lib/ipxe/ipxe-arm64.efi" "$FOLDER/"
}

initramfs() {
  local root=$WORK/root
  mkdir -p "$root"/{bin,proc,sys,dev}
  cp "$(find "$(unpacked busybox-static)" -path '*bin/busybox' -type f | head -n 1)" "$root/bin/busybox"
  ln -s busybox "$root/bin/sh"
  # shellcheck disable=SC2016 # the shell there expands it
  printf '%s\n' '#!/bin/sh' '/bin/busybox --install -s /bin' 'mount -t sysfs sys /sys' 'mount -t devtmpfs dev /dev' \
    'echo "DISK-BOOTED $([ -d /sys/firmware/efi ] && echo UEFI || echo BIOS)"' 'while :; do sleep 60; done' >"$root/init"
  chmod +x "$root/init"
  archive "$root" | gzip -6n
}

image() {
  local kernel disk=$WORK/disk.raw partition
  partition=(-i "$disk@@$((START * 512))")
  kernel=$(apt-cache "${APT[@]}" depends linux-image-cloud-arm64 | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ {print $2; exit}')
  truncate -s ${SIZE_MIB}M "$disk"
  printf 'label: gpt\nstart=%d, size=%d, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B\n' $START $((SIZE_MIB * 2048 - 2 * START)) | sfdisk -q "$disk"
  mkfs.vfat -F 16 -n TINY --offset $START "$disk" $(((SIZE_MIB * 2048 - 2 * START) / 2)) >/dev/null
  mmd "${partition[@]}" ::/EFI ::/EFI/BOOT ::/loader ::/loader/entries
  mcopy "${partition[@]}" "$(unpacked "$kernel")"/boot/vmlinuz-* ::/linux
  initramfs | mcopy "${partition[@]}" - ::/initrd.gz
  mcopy "${partition[@]}" "$(unpacked systemd-boot-efi)/usr/lib/systemd/boot/efi/systemd-bootaa64.efi" ::/EFI/BOOT/BOOTAA64.EFI
  printf 'timeout 0\n' | mcopy "${partition[@]}" - ::/loader/loader.conf
  printf 'title tiny\nlinux /linux\ninitrd /initrd.gz\noptions console=ttyAMA0 quiet rdinit=/init\n' |
    mcopy "${partition[@]}" - ::/loader/entries/tiny.conf
  qemu-img convert -O qcow2 -c "$disk" "$WORK/tiny-arm.qcow2"
  mv "$WORK/tiny-arm.qcow2" "$CACHE/images/"
}

for package in fdisk mtools dosfstools cpio; do
  folder=$(of_host "$package")
  PATH=$PATH:$folder/usr/bin:$folder/usr/sbin:$folder/bin:$folder/sbin
done
export MTOOLS_SKIP_CHECK=1
lists_of_machine
"$HERE/../../images/ramdisk/build.sh" "$FOLDER"
"$HERE/../../images/ramdisk/iso.sh" "$FOLDER"
loader
image
printf '%s\n' "$FOLDER"
