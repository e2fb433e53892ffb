#!/bin/bash
# A dracut module that makes Debian's Ignition work as in the initrd of Fedora CoreOS. dracut sources this file.
# shellcheck disable=SC2154 # moddir, initdir, systemdutildir and systemdsystemunitdir are dracut's

depends() { echo ignition systemd-networkd; }

install() {
  # Debian's Ignition is built to set SELinux labels and fails without this program.
  inst_simple "$moddir/setfiles" /usr/sbin/setfiles
  inst_simple /etc/systemd/network/80-dhcp.network
  inst_simple "$moddir/ignition-network.service" "$systemdsystemunitdir/ignition-network.service"
  mkdir -p "$initdir/$systemdsystemunitdir/ignition-complete.target.requires"
  ln_r "$systemdsystemunitdir/ignition-network.service" \
    "$systemdsystemunitdir/ignition-complete.target.requires/ignition-network.service"
  inst_multiple mount umount modprobe udevadm systemctl "$systemdutildir/systemd-networkd-wait-online"
}
