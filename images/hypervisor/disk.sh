# shellcheck shell=bash
# disk.sh - makes a disk of a tree of packages: a GPT with an EFI system partition and a root partition. Sourced by build.sh.
ESP_MIB=64

uuid_of() { # TEXT: a UUID made from the text
  local hash
  hash=$(printf '%s' "$1" | md5sum)
  printf '%s-%s-4%s-a%s-%s' "${hash:0:8}" "${hash:8:4}" "${hash:13:3}" "${hash:17:3}" "${hash:20:12}"
}

finish_root() { # ROOT UUID: configures the unpacked packages, the same for every machine
  local root=$1
  cp -r "$HERE/tree/." "$root/"
  chown -R 0:0 "$root/etc/cloud/cloud.cfg.d" "$root/etc/systemd/system" "$root/usr/lib/bedplate"
  mkdir -p "$root/boot/efi" "$root"/etc/{nova/nova,neutron/neutron}.conf.d
  cat >"$root/etc/fstab" <<F
UUID=$2 / ext4 errors=remount-ro,x-systemd.growfs 0 1
LABEL=ESP /boot/efi vfat umask=0077,quiet 0 2
F
  # each machine makes these itself
  rm -f "$root"/etc/{hostname,ssh/ssh_host_*} "$root/var/lib/dbus/machine-id"
  : >"$root/etc/machine-id"
  echo 'GenerateName=yes' >"$root/etc/iscsi/initiatorname.iscsi"
  chroot "$root" systemctl --quiet enable systemd-networkd systemd-resolved ssh libvirtd openvswitch-switch bedplate-hypervisor.target
  chroot "$root" systemctl --quiet disable nova-compute neutron-openvswitch-agent
  chroot "$root" systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer e2scrub_reap libvirt-guests
  ln -sfn /run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"
  # the tests in Python's packages, which nothing imports
  find "$root/usr/lib/python3/dist-packages" -type d -name tests -prune -exec rm -r {} +
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*.log "$root"/tmp/*
}

esp() { # FILE UUID: makes the file system with the boot loaders, which find the root by its UUID
  local grub shim
  grub=$(unpacked grub-efi-amd64-signed)/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed
  shim=$(unpacked shim-signed)/usr/lib/shim/shimx64.efi.signed
  mkfs.vfat -C -F 32 -n ESP "$1" $((ESP_MIB * 1024)) >/dev/null
  MTOOLS_SKIP_CHECK=1 mmd -i "$1" ::/EFI ::/EFI/BOOT ::/EFI/debian
  mcopy -i "$1" "$shim" ::/EFI/BOOT/BOOTX64.EFI
  mcopy -i "$1" "$grub" ::/EFI/BOOT/grubx64.efi
  mcopy -i "$1" - ::/EFI/debian/grub.cfg <<C
# /vmlinuz and /initrd.img are Debian's links to the newest kernel. The machine itself writes arguments.cfg.
search --no-floppy --fs-uuid --set=root $2
if [ -s \$prefix/arguments.cfg ]; then source \$prefix/arguments.cfg; fi
linux /vmlinuz root=UUID=$2 ro console=tty0 console=ttyS0,115200 loglevel=4 \$arguments
initrd /initrd.img
boot
C
}

# make_disk TREE UUID FILE
make_disk() {
  local work root mebibytes sectors
  work=$(mktemp -d "$STORE/.disk.XXXXXX")
  # shellcheck disable=SC2064 # expand the folder now, because the variable may change
  trap "rm -rf '$work'" EXIT
  root=$work/root
  cp -a --reflink=auto "$1" "$root"
  finish_root "$root" "$2"
  mebibytes=$(($(du -sm "$root" | cut -f1) * 11 / 10 + 128))
  mke2fs -q -t ext4 -L root -U "$2" -m 1 -d "$root" "$work/root.ext4" "${mebibytes}M" >/dev/null
  esp "$work/esp.fat" "$2"

  truncate -s $((ESP_MIB + mebibytes + 2))M "$work/disk.raw"
  sectors=$((ESP_MIB * 2048))
  printf '%s\n' "label: gpt" "start=2048, size=$sectors, type=uefi, name=esp" \
    "start=$((2048 + sectors)), size=$((mebibytes * 2048)), type=4f68bce3-e8cd-4db1-96e7-fbcaf984b709, name=root" |
    sfdisk --quiet "$work/disk.raw"
  dd if="$work/esp.fat" of="$work/disk.raw" bs=1M seek=1 conv=notrunc,sparse status=none
  dd if="$work/root.ext4" of="$work/disk.raw" bs=1M seek=$((1 + ESP_MIB)) conv=notrunc,sparse status=none
  qemu-img convert -c -W -O qcow2 -o compression_type=zstd "$work/disk.raw" "$work/disk.qcow2"
  mv "$work/disk.qcow2" "$3"
  rm -rf "$work"
  trap - EXIT
}
