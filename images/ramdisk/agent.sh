#!/usr/bin/env bash
# agent.sh [--example NAME] - builds the agent as one static program and prints where it is; or, in the same way, an example of it.
#
# The flags are given here and not in a cargo configuration: an explicit target keeps them from procedural macros.
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
# what unpacks gigabytes is worth its size
# clippy, which compiles the workspace for tests, optimises less
env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS "$VARIABLE=-C target-feature=+crt-static" cargo build --quiet --locked --package agent "${WHAT[@]}" \
  --profile agent --target "$TARGET" \
  --config 'profile.agent.package.miniz_oxide.opt-level=3' >&2
printf '%s\n' "$PWD/target/$TARGET/agent/$BUILT"
