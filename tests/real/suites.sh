# shellcheck shell=bash
# suites.sh - uses packages of other Debian suites than this host's, without installing them. Sourced after debian.sh.
#
#   BEDPLATE_DEBIAN_MIRROR  the mirror (default: the mirror of this host's apt)
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

debian_mirror() {
  local mirror=${BEDPLATE_DEBIAN_MIRROR:-}
  # shellcheck disable=SC2016 # apt expands this
  [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null | sed -n 1p)
  [ -n "$mirror" ] || mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null || true)
  [ -n "$mirror" ] || mirror=$(awk '$1 == "deb" {for (i = 2; i <= NF; i++) if ($i ~ /^http/) {print $i; exit}}' /etc/apt/sources.list 2>/dev/null || true)
  [ -n "$mirror" ] || die "no Debian mirror found: set BEDPLATE_DEBIAN_MIRROR"
  printf '%s\n' "$mirror"
}

# read_suites FOLDER SUITE...: reads the package lists of these suites into a separate folder, which suite_get and suite_cache then use.
read_suites() {
  local folder=$1 mirror
  shift
  mirror=$(debian_mirror)
  mkdir -p "$folder"/{sources,lists/partial,cache/archives/partial}
  : >"$folder/status"
  printf 'Types: deb deb-src\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' \
    "$mirror" "$(printf '%s\n' "$@" | sort -u | paste -sd' ')" "$KEYRING" >"$folder/sources/suites.sources"
  SUITE_OPTIONS=(-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$folder/sources" -o Dir::State::lists="$folder/lists"
    -o Dir::State::status="$folder/status" -o Dir::Cache="$folder/cache" -o APT::Sandbox::User= -o Acquire::Languages=none
    -o Acquire::Retries=3)
  say "reading the package lists of $*"
  suite_get update
}
suite_get() { apt-get -qq "${SUITE_OPTIONS[@]}" "$@" </dev/null >&2; }
suite_cache() { apt-cache "${SUITE_OPTIONS[@]}" "$@"; }
