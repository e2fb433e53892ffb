# shellcheck shell=bash
# Functions that the scripts of this folder share. Sourced, not run.
#
# apt of this host downloads Debian packages, which are unpacked into a cache and never installed, so no root is needed.
CACHE=${BEDPLATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bedplate}
# All files get this time, so the same input gives the same bytes.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000}

say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

needs() { # PROGRAM...
  local program missing=()
  for program in "$@"; do command -v "$program" >/dev/null || missing+=("$program"); done
  [ ${#missing[@]} = 0 ] || die "missing programs: ${missing[*]}"
}

# unpacked PACKAGE   prints the folder with the unpacked newest version of the package
unpacked() {
  local package=$1 version folder download
  version=$(apt-cache show --no-all-versions "$package" 2>/dev/null | awk '$1 == "Version:" {print $2; exit}')
  [ -n "$version" ] || die "apt knows no package $package: run apt-get update"
  folder=$CACHE/deb/$package-${version//[^A-Za-z0-9.+~-]/_}
  if [ ! -d "$folder" ]; then
    say "fetching $package $version"
    mkdir -p "$CACHE/deb"
    download=$(mktemp -d "$CACHE/deb/.download.XXXXXX")
    (cd "$download" && apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=3 download "$package" >&2) ||
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
    command -v "$program" >/dev/null || PATH=$PATH:$(unpacked "$program")/bin:$(unpacked "$program")/usr/bin
  done
}

# archive FOLDER   writes a reproducible initramfs archive of the folder
archive() {
  (cd "$1" && find . -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} + && find . -print0 | LC_ALL=C sort -z |
    cpio -0 -o -H newc -R 0:0 --quiet --reproducible)
}
