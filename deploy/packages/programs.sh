#!/usr/bin/env bash
# programs.sh - compiles the programs of the packages for ARCHITECTURE (amd64 or arm64) and prints their folder.
#
# The bytes depend neither on the folder of the checkout nor on that of cargo: both are replaced in the programs. Each program lists the crates
# that are in it in its section .dep-v0 (cargo-auditable), from which sbom.py makes a bill of materials.
#
# amd64 links Debian 12's C library, which a later Debian can replace. arm64 is cross-compiled on amd64 by Debian's gcc-aarch64-linux-gnu, with
# musl and its headers from Debian's musl-dev, into static programs.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
ROOT=$(readlink -f "$HERE/../..")
export ARCHITECTURE=${ARCHITECTURE:-amd64}
# shellcheck source-path=SCRIPTDIR source=../../images/ramdisk/lib.sh
. "$ROOT/images/ramdisk/lib.sh"
AUDITABLE=$("$ROOT/tests/tool.sh" cargo-auditable 0.7.5)
CARGO=${CARGO_HOME:-$HOME/.cargo}
FLAGS="--remap-path-prefix=$ROOT=/bedplate --remap-path-prefix=$CARGO=/cargo"
C_FLAGS="-ffile-prefix-map=$ROOT=/bedplate -ffile-prefix-map=$CARGO=/cargo"
if [ "$ARCHITECTURE" = amd64 ]; then
  TARGET=x86_64-unknown-linux-gnu
else
  TARGET=aarch64-unknown-linux-musl
  needs rustup aarch64-linux-gnu-gcc
  rustup -q target add "$TARGET" >&2
  lists_of_machine
  COMPILER=aarch64-linux-gnu-gcc
  FLAGS+=' -C target-feature=+crt-static -C linker=rust-lld'
  C_FLAGS+=" -nostdinc -isystem $(unpacked musl-dev)/usr/include/aarch64-linux-musl -isystem $($COMPILER -print-file-name=include) -mno-outline-atomics"
  export CC_aarch64_unknown_linux_musl=$COMPILER AR_aarch64_unknown_linux_musl=aarch64-linux-gnu-ar
fi
UPPER=$(printf '%s' "$TARGET" | tr 'a-z-' 'A-Z_')
cd "$ROOT"
# clippy, which compiles the workspace for tests, optimises less
env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS "CARGO_TARGET_${UPPER}_RUSTFLAGS=$FLAGS" "CFLAGS_${TARGET//-/_}=$C_FLAGS" \
  "$AUDITABLE" auditable build --quiet --locked --release --target "$TARGET" --package baremetal --package cluster --package console \
  --package bedplate --bins >&2
for program in baremetald clusterd consoled bedplate; do
  readelf --sections --wide "target/$TARGET/release/$program" | grep -qF .dep-v0 || die "$program does not list its crates"
done
printf '%s\n' "$ROOT/target/$TARGET/release"
