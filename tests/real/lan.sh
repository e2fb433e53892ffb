#!/bin/sh
# lan.sh ADDRESS get NAME... - prints network settings for ipmi_sim, the BMC as its machine sees it. ipmi_sim asks for these names.
set -eu
address=$1
[ "$2" = get ] || exit 1 # settings are read-only
shift 2
for name; do
  case $name in
    ip_addr) value=$address ;;
    ip_addr_src) value=static ;;
    subnet_mask) value=255.255.255.0 ;;
    default_gw_ip_addr) value=${address%.*}.1 ;;
    backup_gw_ip_addr) value=0.0.0.0 ;;
    mac_addr) value=$(printf '52:54:00:78:01:%02x' "${address##*.}") ;;
    *_mac_addr) value=00:00:00:00:00:00 ;;
    *) exit 1 ;;
  esac
  echo "$name:$value"
done
