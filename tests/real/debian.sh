# shellcheck shell=bash
# debian.sh - functions that the scripts of the tests share: messages, the cache, Debian's packages. Sourced, not run.
#
#   BEDPLATE_CACHE  downloads and state (default ${XDG_CACHE_HOME:-$HOME/.cache}/bedplate)
BEDPLATE_CACHE=${BEDPLATE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bedplate}

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
die() {
  say "$*"
  exit 1
}
needs() { # PROGRAM...
  local program missing=()
  for program in "$@"; do command -v "$program" >/dev/null || missing+=("$program"); done
  [ ${#missing[@]} = 0 ] || die "missing programs: ${missing[*]}"
}
# Closes all inherited files, so that a daemon keeps no lock and no job server of make open.
keep_nothing_open() {
  local descriptor
  for descriptor in "/proc/$BASHPID/fd/"*; do
    [ "${descriptor##*/}" -le 2 ] || eval "exec ${descriptor##*/}>&-"
  done
}
is_root() { [ "$(id -u)" = 0 ]; }

apt() { # apt-get without questions, with a separate archive folder, so that two runs do not delete each other's archives
  local archives=$BEDPLATE_CACHE/apt-archives
  mkdir -p "$archives/partial"
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dir::Cache::archives="$archives" -o DPkg::Lock::Timeout=600 \
    -o APT::Sandbox::User=root -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" </dev/null >&2
}
know_packages() { # updates the package lists if there are none, as in a new container
  [ -n "$(apt-cache madison busybox-static 2>/dev/null)" ] || apt update
}

# without_services COMMAND...: packages that COMMAND installs start no services on this host
without_services() {
  local policy=/usr/sbin/policy-rc.d status=0
  [ ! -e "$policy" ] || { "$@"; return; }
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  "$@" || status=$?
  rm -f "$policy"
  return "$status"
}

# install_packages PACKAGE...: installs the packages that are missing. Needs root if any is missing.
install_packages() {
  local package missing=() options=() installed offered
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} != 0 ] || return 0
  is_root || die "needs root to install ${missing[*]}"
  # One at a time: the first to finish would remove the file that keeps services from starting.
  mkdir -p "$BEDPLATE_CACHE"
  exec 7>"$BEDPLATE_CACHE/install.lock"
  flock 7
  know_packages
  # A qemu-utils from backports is newer than the available emulator and breaks it: install both in the emulator's version.
  case " ${missing[*]} " in *" qemu-system-x86 "*)
    installed=$(dpkg-query -W -f '${Version}' qemu-utils 2>/dev/null || true)
    offered=$(apt-cache madison qemu-system-x86 | awk 'NR == 1 {print $3}')
    if [ -n "$installed" ] && [ "$installed" != "$offered" ]; then
      say "qemu-utils $installed becomes $offered, to fit qemu-system-x86"
      missing+=("qemu-utils=$offered" "qemu-system-x86=$offered")
      options+=(--allow-downgrades)
    fi
    ;;
  esac
  say "installing ${missing[*]}"
  without_services apt "${options[@]}" install -y --no-install-recommends "${missing[@]}"
  apt clean
  exec 7>&-
}

# unpacked PACKAGE...: downloads packages and unpacks them in the cache without installing them; prints the folder. Needs no root.
unpacked() {
  local folder download archive
  folder=$BEDPLATE_CACHE/unpacked/$(printf '%s\n' "$@" | paste -sd+)
  mkdir -p "$BEDPLATE_CACHE/unpacked"
  exec 6>"$folder.lock"
  flock 6
  if [ ! -f "$folder/.complete" ]; then
    say "fetching $*"
    rm -rf "$folder"
    mkdir -p "$folder"
    download=$(mktemp -d)
    (cd "$download" && apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=3 download "$@" </dev/null) >&2 ||
      die "apt-get download $* failed: try apt-get update"
    for archive in "$download"/*.deb; do dpkg-deb -x "$archive" "$folder"; done
    rm -rf "$download"
    touch "$folder/.complete"
  fi
  exec 6>&-
  printf '%s\n' "$folder"
}
