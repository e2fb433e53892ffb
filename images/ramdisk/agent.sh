#!/usr/bin/env bash
# agent.sh [--example NAME] - builds the agent, or one of its examples, as one static program and prints its path.
#
# TARGET=aarch64-unknown-linux-musl builds for 64-bit ARM, after `rustup target add aarch64-unknown-linux-musl`, with Debian's packages
# gcc-aarch64-linux-gnu and libc6-dev-arm64-cross, which compile the C and the assembler of ring.
#
# The flags are here and not in a cargo configuration, because an explicit target keeps the flags away from procedural macros.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
TARGET=${TARGET:-x86_64-unknown-linux-gnu}
WHAT=(--bin ramdisk-agent)
BUILT=ramdisk-agent
if [ "${1:-}" = --example ]; then
  WHAT=(--example "${2:?usage: agent.sh --example NAME}")
  BUILT=examples/$2
fi
cd "$HERE/../.."
VARIABLE=CARGO_TARGET_$(printf '%s' "$TARGET" | tr 'a-z-' 'A-Z_')_RUSTFLAGS
FLAGS='-C target-feature=+crt-static'
if [ "$TARGET" = aarch64-unknown-linux-musl ]; then
  FLAGS+=' -C linker=rust-lld'
  export CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc AR_aarch64_unknown_linux_musl=aarch64-linux-gnu-ar
fi
# miniz_oxide unpacks gigabytes, so speed matters more than size
# clippy, which compiles the workspace for tests, optimises less
env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS "$VARIABLE=$FLAGS" cargo build --quiet --locked --package agent "${WHAT[@]}" \
  --profile agent --target "$TARGET" \
  --config 'profile.agent.package.miniz_oxide.opt-level=3' >&2
printf '%s\n' "$PWD/target/$TARGET/agent/$BUILT"
