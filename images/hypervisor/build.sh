#!/usr/bin/env bash
# build.sh [FOLDER] - builds FOLDER/hypervisor.qcow2: a disk that becomes an OpenStack compute host with the settings of its config drive.
#
# The disk has Debian with libvirt, QEMU, nova-compute and Neutron's Open vSwitch agent, and a GPT. UEFI boots through Debian's signed shim
# and
# GRUB to Debian's signed kernel, so Secure Boot can stay on. README.md describes the boot.
#   HYPERVISOR_PACKAGES  additional packages, such as "intel-microcode firmware-bnx2x"
#   HYPERVISOR_SUITE     the Debian release, which decides Nova's (default bookworm: Zed)
#
# FOLDER is images/ in the cache by default. The cache keeps the packages under the hash of their list. An up-to-date disk is not built
# again. Needs root.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=../ramdisk/lib.sh disable=SC1091
. "$HERE/../ramdisk/lib.sh"
# shellcheck source-path=SCRIPTDIR source=disk.sh disable=SC1091
. "$HERE/disk.sh"
FOLDER=${1:-$CACHE/images}
SUITE=${HYPERVISOR_SUITE:-bookworm}
read -ra MORE <<<"${HYPERVISOR_PACKAGES:-}"
STORE=$CACHE/hypervisor
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

hash_of() { sha256sum | cut -c1-16; }
listed() { sed 's/#.*//; s/[[:space:]]*$//; /^$/d' "$HERE/$1"; }
mapfile -t PACKAGES < <(listed packages)
mapfile -t LEFT_OUT < <(listed left-out)
TREE=$STORE/tree-$(printf '%s\n' "$SUITE" "${PACKAGES[@]}" "${MORE[@]}" "${LEFT_OUT[@]}" | hash_of)
ALL=$({
  echo "$TREE"
  tar -C "$HERE" --sort=name --mtime=@0 --owner=0 --group=0 -cf - build.sh disk.sh tree
} | hash_of)

mirror() { # prints the mirror of this host's apt
  local mirror=${BEDPLATE_DEBIAN_MIRROR:-}
  # shellcheck disable=SC2016 # apt expands this
  [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sed -n 1p)
  [ -n "$mirror" ] || die "no Debian mirror found: set BEDPLATE_DEBIAN_MIRROR"
  printf '%s\n' "$mirror"
}

make_tree() {
  local options=() path packages
  say "installing $SUITE's nova-compute and what it needs"
  rm -rf --one-file-system "$STORE"/tree-*
  for path in "${LEFT_OUT[@]}"; do options+=("--dpkgopt=path-exclude=$path"); done
  packages=$(printf '%s,' "${PACKAGES[@]}" "${MORE[@]}")
  mmdebstrap --variant=minbase "${options[@]}" --include="${packages%,}" "$SUITE" "$TREE.new" \
    "deb [signed-by=$KEYRING] $(mirror) $SUITE main non-free-firmware" >"$STORE/packages.log" 2>&1 ||
    { tail -n 40 "$STORE/packages.log" >&2; die "mmdebstrap failed: see $STORE/packages.log"; }
  mv "$TREE.new" "$TREE"
}

[ "$(id -u)" = 0 ] || die "needs root, for the accounts and devices of another system"
needs mmdebstrap mke2fs qemu-img chroot
for package in mtools dosfstools fdisk; do
  folder=$(unpacked "$package")
  PATH=$PATH:$folder/usr/bin:$folder/usr/sbin:$folder/sbin
done
mkdir -p "$STORE" "$FOLDER"
exec 9>"$STORE/lock"
flock 9
if [ "$(cat "$FOLDER/hypervisor.made-of" 2>/dev/null)" != "$ALL" ] || [ ! -f "$FOLDER/hypervisor.qcow2" ]; then
  [ -d "$TREE" ] || make_tree
  say "making a disk of $(du -sm "$TREE" | cut -f1) MiB"
  make_disk "$TREE" "$(uuid_of "$ALL")" "$FOLDER/hypervisor.qcow2"
  echo "$ALL" >"$FOLDER/hypervisor.made-of"
fi
say "$FOLDER/hypervisor.qcow2: $(stat -c %s "$FOLDER/hypervisor.qcow2") bytes"
