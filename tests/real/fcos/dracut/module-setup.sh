#!/bin/bash
# What Debian's Ignition needs around it to be what Fedora CoreOS has in its initrd. dracut sources this file.
# shellcheck disable=SC2154 # moddir, initdir, systemdutildir and systemdsystemunitdir are dracut's

depends() { echo ignition systemd-networkd; }

install() {
  # Debian's is built to label what it writes for SELinux, and fails without this program.
  inst_simple "$moddir/setfiles" /usr/sbin/setfiles
  inst_simple /etc/systemd/network/80-dhcp.network
  inst_simple "$moddir/ignition-network.service" "$systemdsystemunitdir/ignition-network.service"
  mkdir -p "$initdir/$systemdsystemunitdir/ignition-complete.target.requires"
  ln_r "$systemdsystemunitdir/ignition-network.service" \
    "$systemdsystemunitdir/ignition-complete.target.requires/ignition-network.service"
  inst_multiple mount umount modprobe udevadm systemctl "$systemdutildir/systemd-networkd-wait-online"
}
