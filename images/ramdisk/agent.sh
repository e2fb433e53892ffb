#!/usr/bin/env bash
# agent.sh [--example NAME] - builds the agent, or one of its examples, as one static program and prints its path.
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
# miniz_oxide unpacks gigabytes, so speed matters more than size
# clippy, which compiles the workspace for tests, optimises less
env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS "$VARIABLE=-C target-feature=+crt-static" cargo build --quiet --locked --package agent "${WHAT[@]}" \
  --profile agent --target "$TARGET" \
  --config 'profile.agent.package.miniz_oxide.opt-level=3' >&2
printf '%s\n' "$PWD/target/$TARGET/agent/$BUILT"
