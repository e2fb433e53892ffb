# shellcheck shell=bash
# debian.sh - what the scripts of the tests share: words, the cache, Debian's packages. Sourced, not run.
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
# What stays keeps nothing of its starter's open: no lock, no job server of make's.
keep_nothing_open() {
  local descriptor
  for descriptor in "/proc/$BASHPID/fd/"*; do
    [ "${descriptor##*/}" -le 2 ] || eval "exec ${descriptor##*/}>&-"
  done
}
is_root() { [ "$(id -u)" = 0 ]; }

apt() { # apt-get with an archive folder of its own, so that two at once do not empty each other's, and none of its questions
  local archives=$BEDPLATE_CACHE/apt-archives
  mkdir -p "$archives/partial"
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dir::Cache::archives="$archives" -o DPkg::Lock::Timeout=600 \
    -o APT::Sandbox::User=root -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" </dev/null >&2
}
know_packages() { # a fresh container has no package lists yet
  [ -n "$(apt-cache madison busybox-static 2>/dev/null)" ] || apt update
}

# without_services COMMAND...: nothing that is installed meanwhile starts a service of the whole machine
without_services() {
  local policy=/usr/sbin/policy-rc.d status=0
  [ ! -e "$policy" ] || { "$@"; return; }
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  "$@" || status=$?
  rm -f "$policy"
  return "$status"
}

# install PACKAGE...: what is missing of these, and only that. Needs root when anything is.
install_packages() {
  local package missing=() options=() installed offered
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} != 0 ] || return 0
  is_root || die "needs root to install ${missing[*]}"
  # One at a time: whoever is done takes away what keeps services from starting.
  mkdir -p "$BEDPLATE_CACHE"
  exec 7>"$BEDPLATE_CACHE/install.lock"
  flock 7
  know_packages
  # A qemu-utils from backports is newer than the emulator on offer and breaks it: take both in the emulator's version.
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

# unpacked PACKAGE...: fetches these and unpacks them in the cache, installing nothing; prints the folder. Needs no root.
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
