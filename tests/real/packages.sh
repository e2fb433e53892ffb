#!/usr/bin/env bash
# packages.sh PACKAGE... - installs what is missing of these; without root says what is missing and goes on.
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
