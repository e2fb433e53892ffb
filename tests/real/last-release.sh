#!/usr/bin/env bash
# last-release.sh programs    builds the programs of the last release, once, and prints their folder
# last-release.sh name        prints its version and its commit
#
# Both print nothing before the first release, and `programs` prints nothing in a clone without its commit (a shallow one). deploy/releases.txt
# names the commit, so that a clone without tags finds it. The programs are built as `cargo build` builds them, and kept in the cache with
# those of the release before.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=debian.sh disable=SC1091
. "$HERE/debian.sh"
cd "$HERE/../.."
RELEASES=$BEDPLATE_CACHE/releases
NAMES=(bedplate baremetald clusterd consoled)

name() { awk '!/^#/ && NF { print $1, $2; exit }' deploy/releases.txt; }

build() { # VERSION COMMIT FOLDER
  local version=$1 commit=$2 folder=$3 work
  say "building release $version, which takes some minutes"
  work=$(mktemp -d "$RELEASES/build-XXXXXX")
  # shellcheck disable=SC2064 # the folder of now
  trap "rm -rf '$work'" EXIT
  git archive "$commit" | tar -x -C "$work"
  # Not with the lints of this tree, and in the release's own folder.
  (
    cd "$work"
    unset RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS CARGO_TARGET_DIR
    tests/deps-cache.sh restore
    BEDPLATE_VERSION="$version (${commit:0:12})" cargo build --quiet --locked --workspace --bins
    mkdir complete
    cp "${NAMES[@]/#/target/debug/}" complete
  ) >&2
  rm -rf "$folder"
  mv "$work/complete" "$folder"
}

programs() {
  local version commit folder
  read -r version commit < <(name) || return 0
  folder=$RELEASES/$version-$commit
  mkdir -p "$RELEASES"
  exec 9>"$RELEASES/.lock"
  flock 9
  if [ ! -d "$folder" ] && ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
    echo "NOT CHECKED: the upgrade from release $version, because this clone lacks its commit: git fetch --unshallow" >&2
    return
  fi
  [ -d "$folder" ] || build "$version" "$commit" "$folder"
  touch "$folder"
  find "$RELEASES" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -rn | tail -n +3 | cut -d' ' -f2- | xargs -r rm -rf
  printf '%s\n' "$folder"
}

case ${1:-} in
  programs | name) "$1" ;;
  *)
    sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//'
    exit 2
    ;;
esac
