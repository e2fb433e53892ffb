#!/usr/bin/env bash
# iso.sh OUT - builds OUT/ramdisk.iso from OUT/kernel and OUT/ramdisk, for booting as virtual media by BIOS and by UEFI.
#
#   ARCHITECTURE  the machine's: amd64 (default) or arm64, which boots by UEFI only
#
# The image needs no network to start and no DHCP: a server writes a machine's arguments into the image while it streams it (README.md).
# The ramdisk has ramdisk-agent or a released ironic-python-agent.
# UEFI boots through Debian's signed shim and GRUB to Debian's signed kernel, so Secure Boot can stay on.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$HERE/lib.sh"
OUT=${1:?usage: iso.sh OUT}
if [ ! -f "$OUT/ramdisk" ] || [ ! -f "$OUT/kernel" ]; then die "run build.sh $OUT first"; fi
needs apt-get apt-cache dpkg-deb
borrows cpio
# programs from several packages: their own libraries first, those of this host for the rest
for package in xorriso libisoburn1 libisofs6 libburn4 libjte2 mtools dosfstools; do
  folder=$(of_host "$package")
  PATH=$PATH:$folder/usr/bin:$folder/usr/sbin:$folder/sbin
  LIBRARIES=${LIBRARIES:+$LIBRARIES:}$folder/usr/lib/x86_64-linux-gnu
done
xorriso() { LD_LIBRARY_PATH=$LIBRARIES command xorriso "$@"; }
# shellcheck disable=SC2034 # unpacked adds the sources of the boot loaders to it
SOURCES=$OUT/sources
case $ARCHITECTURE in
  amd64) EFI_NAME=x64 GRUB_TARGET=x86_64-efi CONSOLES='console=tty0 console=ttyS0,115200' ;;
  arm64) EFI_NAME=aa64 GRUB_TARGET=arm64-efi CONSOLES='console=tty0 console=ttyS0,115200 console=ttyAMA0,115200' ;;
esac
lists_of_machine
SHIM=$(unpacked shim-signed)/usr/lib/shim/shim$EFI_NAME.efi.signed
# the GRUB of Debian's own CDs, which looks for /.disk/info and reads /boot/grub/grub.cfg
GRUB=$(unpacked "grub-efi-$ARCHITECTURE-signed")/usr/lib/grub/$GRUB_TARGET-signed/gcd$EFI_NAME.efi.signed

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
ISO=$WORK/iso
mkdir -p "$ISO"/{.disk,boot/grub}
cp "$OUT/kernel" "$OUT/ramdisk" "$ISO/boot/"
echo bedplate >"$ISO/.disk/info"

# The arguments: a second, uncompressed archive with one file of 4096 bytes, which the server overwrites.
MARKER='# bedplate arguments: 4096 bytes from here may be overwritten'
mkdir -p "$WORK/arguments/etc/bedplate"
{
  printf '%s\n' "$MARKER"
  printf '%*s' $((4096 - ${#MARKER} - 1)) ''
} >"$WORK/arguments/etc/bedplate/arguments"
archive "$WORK/arguments" >"$ISO/boot/arguments"
# ironic-python-agent reads them in this file, if the kernel has boot_method=vmedia and the medium has the label IR-VFD-DEV.
cp "$WORK/arguments/etc/bedplate/arguments" "$ISO/parameters.txt"

KERNEL_ARGUMENTS="boot_method=vmedia $CONSOLES quiet"
BY_BIOS=() BY_UEFI=(-e boot/efi.img -no-emul-boot)
boots_by_bios() { # makes the CD, and a disk with the same bytes, boot by BIOS
  local syslinux isolinux
  syslinux=$(unpacked syslinux-common)/usr/lib/syslinux/modules/bios
  isolinux=$(unpacked isolinux)/usr/lib/ISOLINUX
  mkdir "$ISO/isolinux"
  cp "$isolinux/isolinux.bin" "$syslinux/ldlinux.c32" "$ISO/isolinux/"
  cat >"$ISO/isolinux/isolinux.cfg" <<CFG
SERIAL 0 115200
DEFAULT ramdisk
PROMPT 0
LABEL ramdisk
  LINUX /boot/kernel
  INITRD /boot/ramdisk,/boot/arguments
  APPEND $KERNEL_ARGUMENTS
CFG
  BY_BIOS=(-isohybrid-mbr "$isolinux/isohdpfx.bin"
    -b isolinux/isolinux.bin -c isolinux/boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table -eltorito-alt-boot)
  BY_UEFI+=(-isohybrid-gpt-basdat)
}
[ "$ARCHITECTURE" != amd64 ] || boots_by_bios
cat >"$ISO/boot/grub/grub.cfg" <<CFG
set timeout=0
menuentry ramdisk {
  linux /boot/kernel $KERNEL_ARGUMENTS
  initrd /boot/ramdisk /boot/arguments
}
CFG

# the El Torito image for UEFI: a FAT file system with only the boot loaders
EFI=$ISO/boot/efi.img
mkfs.vfat -C -i BEDB1A7E -n BEDPLATE --invariant "$EFI" 8192 >/dev/null
export MTOOLS_SKIP_CHECK=1
for file in "$SHIM" "$GRUB"; do cp "$file" "$WORK/"; touch -d "@$SOURCE_DATE_EPOCH" "$WORK/${file##*/}"; done
mmd -i "$EFI" ::/EFI ::/EFI/BOOT
mcopy -m -i "$EFI" "$WORK/${SHIM##*/}" "::/EFI/BOOT/BOOT${EFI_NAME^^}.EFI"
mcopy -m -i "$EFI" "$WORK/${GRUB##*/}" "::/EFI/BOOT/grub$EFI_NAME.efi"

xorriso -as mkisofs -quiet -o "$OUT/ramdisk.iso" -V IR-VFD-DEV -R -J \
  --modification-date="$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S00)" --set_all_file_dates "@$SOURCE_DATE_EPOCH" \
  "${BY_BIOS[@]}" "${BY_UEFI[@]}" "$ISO"

COUNT=$(grep -aoF "$MARKER" "$OUT/ramdisk.iso" | wc -l)
[ "$COUNT" = 2 ] || die "the marker is there $COUNT times"
OFFSETS=$(grep -aboF "$MARKER" "$OUT/ramdisk.iso" | cut -d: -f1 | paste -sd ' ')
LC_ALL=C sort -u -o "$SOURCES" "$SOURCES"
say "$OUT/ramdisk.iso: $(stat -c %s "$OUT/ramdisk.iso") bytes; arguments at bytes $OFFSETS"
