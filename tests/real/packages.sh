#!/usr/bin/env bash
# packages.sh PACKAGE... - installs missing packages; without root, only reports what is missing.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=debian.sh disable=SC1091
. "$HERE/debian.sh"

if is_root; then
  install_packages "$@"
else
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || say "not root, so not installed: $package"
  done
fi
