#!/usr/bin/env bash
# deps-cache.sh restore
# deps-cache.sh save TREE...
# Caches the builds of other people's crates, so that a clean clone builds only its own crates. A TREE is a folder below target, in which
# nothing is built at that time.
#
# The cache has one folder for each combination of other people's packages in Cargo.lock, toolchain, profiles, and variables that change a
# profile. A dependency between our own crates changes Cargo.lock but no other person's package, so it keeps the folder. Cargo checks each
# build by its fingerprint and repeats it if the fingerprint differs, so a wrong cache only costs time.
# The cache is $BEDPLATE_CACHE/deps (BEDPLATE_DEPS_CACHE=no: none). The two folders used last are kept.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=real/debian.sh disable=SC1091
. "$HERE/real/debian.sh"
cd "$HERE/.."
[ "${BEDPLATE_DEPS_CACHE:-}" != no ] || exit 0

KEY=$({
  awk 'BEGIN { RS = ""; ORS = "\n\n" } /\nsource = /' Cargo.lock
  cat .cargo/config.toml 2>/dev/null || true
  rustc -vV
  sed -n '/^\[profile/,$p' Cargo.toml | grep -vE '^(#|$)'
  env | sort | sed -nE '/^(CARGO_(PROFILE|INCREMENTAL)|RUSTFLAGS)/p'
} | sha256sum | cut -c1-16)
KEPT=$BEDPLATE_CACHE/deps
CACHE=$KEPT/$KEY
TREES=(debug rustdoc/debug agent x86_64-unknown-linux-gnu/agent)
export LC_ALL=C

# Prints the names of our own crates, as cargo writes them in file names. They are never cached, because each clone has its own.
ours() { cargo metadata --no-deps --format-version 1 | python3 -c 'import json, sys
for package in json.load(sys.stdin)["packages"]:
    for name in [package["name"]] + [target["name"] for target in package["targets"]]:
        print(name); print(name.replace("-", "_"))' | sort -u; }

# Prints the fingerprints, build scripts and libraries in a build folder.
files() { # FOLDER
  [ ! -d "$1/deps" ] || (cd "$1" && find .fingerprint build deps -mindepth 1 -maxdepth 1 \
    \( -path 'deps/*' \( -name '*.rlib' -o -name '*.rmeta' -o -name '*.so' -o -name '*.d' \) -o -not -path 'deps/*' \) -printf '%p\n')
}

# Prints those of them that belong to other people's crates.
theirs() { # FOLDER
  files "$1" |
    awk 'NR == FNR { own[$1] = 1; next }
      { name = $0; sub(/.*\//, "", name); sub(/\.(rlib|rmeta|so|d)$/, "", name); sub(/-[0-9a-f]{16}$/, "", name)
        bare = name; sub(/^lib/, "", bare)
        if (!(name in own) && !(bare in own)) print }' <(ours) -
}

case ${1:?usage: deps-cache.sh restore | save TREE...} in
restore)
  # The lanes of `make test` restore at the same time; the later one finds the builds of the earlier one.
  mkdir -p target "$KEPT"
  exec 8>"$KEPT/.lock" 9>target/.deps-cache.lock
  flock --shared 8
  flock 9
  for tree in "${TREES[@]}"; do
    if [ ! -d "$CACHE/$tree" ] || [ -d "target/$tree/.fingerprint" ]; then continue; fi
    touch "$CACHE"
    mkdir -p "target/$tree"
    cp -a "$CACHE/$tree/." "target/$tree/"
    say "others' crates for target/$tree come from $CACHE"
  done
  ;;
save)
  mkdir -p "$CACHE"
  exec 9>"$KEPT/.lock"
  flock 9
  for tree in "${@:2}"; do
    theirs "target/$tree" | sort >"$CACHE/.theirs"
    # A run may build more than the run before it.
    [ -n "$(comm -23 "$CACHE/.theirs" <(files "$CACHE/$tree" | sort))" ] || continue
    rm -rf "$CACHE/.new"
    mkdir -p "$CACHE/.new" "$(dirname "$CACHE/$tree")"
    tar -C "target/$tree" -cf - --files-from "$CACHE/.theirs" | tar -C "$CACHE/.new" -xf -
    rm -rf "${CACHE:?}/$tree"
    mv "$CACHE/.new" "$CACHE/$tree"
    say "others' crates of target/$tree are kept in $CACHE ($(du -sh "$CACHE/$tree" | cut -f1))"
  done
  rm -f "$CACHE/.theirs"
  find "$KEPT" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -rn | awk 'NR > 2 { print $2 }' | xargs -r rm -rf
  ;;
esac
