#!/bin/sh
# mdadm of an emulated machine, in whose root directory it runs: shows arrays in sys/block, and writes each call to mdadm.log.
# An array has a file instead of its members, and 600 MiB. FAIL in the root directory makes the named command fail.
echo "$*" >>mdadm.log
if [ "$(cat FAIL 2>/dev/null)" = "$1" ]; then
  echo "mdadm: $1 was told to fail" >&2
  exit 1
fi
case $1 in
--create)
  array=${2#/dev/}
  size=600
  mkdir -p "sys/block/$array/slaves" "sys/block/$array/queue"
  while [ $# -gt 0 ]; do
    case $1 in
    --name) echo "any:$2" >"$array.name" ;;
    /dev/sd*)
      member=${1#/dev/}
      disk=${member%%[0-9]*}
      mkdir -p "sys/block/$disk/$member/holders"
      : >"sys/block/$disk/$member/holders/$array"
      : >"sys/block/$array/slaves/$member"
      ;;
    esac
    shift
  done
  echo 512 >"sys/block/$array/queue/logical_block_size"
  echo $((size * 2048)) >"sys/block/$array/size"
  truncate -s "${size}M" "dev/$array"
  ;;
--stop)
  array=${2#/dev/}
  rm -r "sys/block/$array" "dev/$array" "$array.name"
  find sys/block -path "*/holders/$array" -delete
  ;;
--detail) echo "MD_NAME=$(cat "${3#/dev/}.name")" ;;
--assemble) [ -e sys/block/md0 ] ;;
*) exit 2 ;;
esac
