# shellcheck shell=bash
# Functions that the scripts of this folder share. Sourced, not run.
#
# apt of this host downloads Debian packages, which are unpacked into a cache and never installed, so no root is needed.
CACHE=${BEDPLATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bedplate}
# The machine's architecture, as Debian calls it: amd64 or arm64.
ARCHITECTURE=${ARCHITECTURE:-amd64}
case $ARCHITECTURE in
  amd64) TRIPLET=x86_64-linux-gnu LOADER=lib64/ld-linux-x86-64.so.2 ;;
  arm64) TRIPLET=aarch64-linux-gnu LOADER=lib/ld-linux-aarch64.so.1 ;;
  *) printf 'ARCHITECTURE: %s is neither amd64 nor arm64\n' "$ARCHITECTURE" >&2; exit 1 ;;
esac
# All files get this time, so the same input gives the same bytes.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000}

say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

needs() { # PROGRAM...
  local program missing=()
  for program in "$@"; do command -v "$program" >/dev/null || missing+=("$program"); done
  [ ${#missing[@]} = 0 ] || die "missing programs: ${missing[*]}"
}

# lists_of_machine   makes `apt` know the packages of the machine's architecture, with lists of their own if it is not this host's
APT=()
lists_of_machine() {
  local lists=$CACHE/apt-$ARCHITECTURE
  [ "$ARCHITECTURE" != "$(dpkg --print-architecture)" ] || return 0
  mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
  touch "$lists/status"
  APT=(-o "APT::Architecture=$ARCHITECTURE" -o "APT::Architectures::=$ARCHITECTURE" -o "Dir::State::status=$lists/status"
    -o "Dir::State::lists=$lists/lists" -o "Dir::Cache=$lists/cache" -o Acquire::Languages=none)
  [ -n "$(find "$lists/lists" -name '*_Packages*' -mtime -1 -print -quit)" ] ||
    apt-get -qq "${APT[@]}" -o APT::Sandbox::User=root -o Acquire::Retries=3 update >&2
}

# of_host PACKAGE   as unpacked, but of this host's architecture, for a program that runs here
of_host() {
  local APT=() SOURCES=
  unpacked "$1"
}

# unpacked PACKAGE   prints the folder with the unpacked newest version of the package, and adds its source to the file SOURCES, if that is set
unpacked() {
  local package=$1 record version folder download
  record=$(apt-cache "${APT[@]}" show --no-all-versions "$package" 2>/dev/null || true)
  version=$(awk '$1 == "Version:" {print $2; exit}' <<<"$record")
  [ -n "$version" ] || die "apt knows no package $package: run apt-get update"
  # deb-control(5): the version of the source stands in parentheses if it is another than the package's.
  [ -z "${SOURCES:-}" ] || awk -v name="$package" -v version="$version" '
    $1 == "Source:" { name = $2; if ($3 != "") { version = $3; gsub(/[()]/, "", version) } }
    END { print name, version }' <<<"$record" >>"$SOURCES"
  folder=$CACHE/deb/$package-${version//[^A-Za-z0-9.+~-]/_}
  [ ${#APT[@]} = 0 ] || folder+=-$ARCHITECTURE
  if [ ! -d "$folder" ]; then
    say "fetching $package $version"
    mkdir -p "$CACHE/deb"
    download=$(mktemp -d "$CACHE/deb/.download.XXXXXX")
    (cd "$download" && apt-get -qq "${APT[@]}" -o APT::Sandbox::User=root -o Acquire::Retries=3 download "$package" >&2) ||
      { rm -rf "$download"; die "apt-get download $package failed"; }
    mkdir "$download/tree"
    dpkg-deb -x "$download"/*.deb "$download/tree"
    # another process may have been faster
    mv -T "$download/tree" "$folder" 2>/dev/null || [ -d "$folder" ] || die "cannot keep $package in $folder"
    rm -rf "$download"
  fi
  printf '%s\n' "$folder"
}

# borrows PROGRAM...   adds missing programs to PATH, from the Debian packages of the same names
borrows() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || PATH=$PATH:$(of_host "$program")/bin:$(of_host "$program")/usr/bin
  done
}

# archive FOLDER   writes a reproducible initramfs archive of the folder
archive() {
  (cd "$1" && find . -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} + && find . -print0 | LC_ALL=C sort -z |
    cpio -0 -o -H newc -R 0:0 --quiet --reproducible)
}

# find_kernel   sets KERNEL to the folder with Debian's newest kernel, VERSION to its version, BUSYBOX to a static busybox, and DEPMOD to one
# that runs on this host
find_kernel() {
  local package
  package=$(apt-cache "${APT[@]}" depends "linux-image-$ARCHITECTURE" | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ {print $2; exit}')
  [ -n "$package" ] || die "apt knows no linux-image-$ARCHITECTURE: run apt-get update"
  KERNEL=$(unpacked "$package")
  VERSION=${package#linux-image-}
  # since trixie, modules are below /usr
  [ -d "$KERNEL/lib/modules" ] || ln -s usr/lib "$KERNEL/lib"
  # shellcheck disable=SC2034 # build.sh uses it
  BUSYBOX=$(find "$(unpacked busybox-static)" -path "*bin/busybox" -type f | head -n 1)
  DEPMOD=$(find "$(of_host busybox-static)" -path "*bin/busybox" -type f | head -n 1)
  if [ ! -f "$KERNEL/lib/modules/$VERSION/.listed" ]; then
    "$DEPMOD" depmod -b "$KERNEL" "$VERSION"
    touch "$KERNEL/lib/modules/$VERSION/.listed"
  fi
}

# copy_mdadm TREE   copies Debian's mdadm into the tree of a ramdisk, with the libraries that it is linked with
copy_mdadm() {
  copy_program "$1" mdadm mdadm libudev1/libudev.so.1
}

# copy_mke2fs TREE   copies Debian's mke2fs into the tree of a ramdisk, with the libraries that it is linked with
copy_mke2fs() {
  copy_program "$1" e2fsprogs mke2fs libext2fs2/libext2fs.so.2 libext2fs2/libe2p.so.2 libcom-err2/libcom_err.so.2 \
    libblkid1/libblkid.so.1 libuuid1/libuuid.so.1
}

# copy_program TREE PACKAGE PROGRAM PACKAGE/LIBRARY...   copies a program of a Debian package, the C library, and these libraries
copy_program() {
  local tree=$1 program library from
  program=$(find "$(unpacked "$2")" -path "*sbin/$3" -type f)
  install -D -m 755 "$program" "$tree/bin/$3"
  for from in "libc6/${LOADER##*/}" libc6/libc.so.6 "${@:4}"; do
    library=$(find "$(unpacked "${from%/*}")" -name "${from#*/}" -path '*/lib/*' | head -n 1)
    # a symbolic link becomes the library itself
    install -D -m 755 "$library" "$tree/lib/$TRIPLET/${from#*/}"
  done
  mkdir -p "$tree/${LOADER%/*}"
  ln -sf "/lib/$TRIPLET/${LOADER##*/}" "$tree/$LOADER"
}

# The modules that the menus of distributions use, and what reads a disk.
GRUB_MODULES='biosdisk part_msdos part_gpt ext2 normal configfile search search_fs_uuid search_fs_file search_label test echo true linux linux16
  ls cat sleep reboot halt gzio xzio lzopio minicmd loadenv all_video video vbe vga gfxterm gfxmenu font png serial terminal terminfo
  keystatus regexp probe boot chain cpuid datetime eval'

# make_grub TREE   makes lib/grub/boot.img and core.img, with which the agent makes a disk boot by BIOS (services/agent/src/disk/grub.rs)
make_grub() {
  local tree=$1 modules maker libraries early
  modules=$(unpacked grub-pc-bin)/usr/lib/grub/i386-pc
  maker=$(of_host grub-common)/usr/bin/grub-mkimage
  libraries=$(dirname "$(find "$(of_host libdevmapper1.02.1)" -name 'libdevmapper.so.*')")
  early=$(mktemp)
  # The agent writes the commands for this disk to its sector 2040.
  # shellcheck disable=SC2016 # GRUB's variable
  echo 'normal ($root)2040+1' >"$early"
  mkdir -p "$tree/lib/grub"
  # shellcheck disable=SC2086 # one word each
  LD_LIBRARY_PATH=$libraries "$maker" -O i386-pc -d "$modules" -p /boot/grub -c "$early" -o "$tree/lib/grub/core.img" $GRUB_MODULES ||
    { rm -f "$early"; die "grub-mkimage failed"; }
  rm -f "$early"
  cp "$modules/boot.img" "$tree/lib/grub/"
}

# copy_modules TREE NAME...   copies these modules of the kernel, and the modules that these need, into the tree of a ramdisk
copy_modules() {
  local tree=$1 modules=$KERNEL/lib/modules/$VERSION file
  shift
  mkdir -p "$tree/lib/modules/$VERSION"
  with_needs "$@" | while read -r file; do
    install -D -m 644 "$modules/$file" "$tree/lib/modules/$VERSION/$file"
  done
  cp "$modules"/modules.{builtin,order} "$tree/lib/modules/$VERSION/"
  "$DEPMOD" depmod -b "$tree" "$VERSION"
}

# with_needs NAME...   prints the files of these modules and of their dependencies, from modules.dep
with_needs() {
  awk -v names="$*" '
    function module(path) { gsub(/.*\/|\.ko.*/, "", path); gsub(/-/, "_", path); return path }
    function take(path,  i, n, list) {
      if (path in taken) return
      taken[path] = 1
      print path
      n = split(needs[path], list, " ")
      for (i = 1; i <= n; i++) take(list[i])
    }
    { path = $1; sub(/:$/, "", path); file[module(path)] = path; $1 = ""; needs[path] = $0 }
    END {
      n = split(names, wanted, " ")
      for (i = 1; i <= n; i++) {
        if (module(wanted[i]) in file) take(file[module(wanted[i])])
        else print "this kernel has no module " wanted[i] >"/dev/stderr"
      }
    }' "$KERNEL/lib/modules/$VERSION/modules.dep"
}
