#!/usr/bin/env bash
# mutants.sh [OPTION...] - changes what decides, one line at a time, and asks whether a test fails; hours.
#
# What is changed stands in .cargo/mutants.toml. Options are cargo-mutants' own: `--file services/baremetal-core/src/plan.rs` tries one
# file, `--shard 0/8` an eighth. The outcome is in target/mutants.out; a mutant that lives is either killed by a new test or explained in
# tests/README.md.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
cd "$HERE/.."
PROGRAM=$("$HERE/tool.sh" cargo-mutants 27.1.0)
# The tests of the crate that is changed, and not those of the whole workspace.
exec env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS CARGO_PROFILE_DEV_DEBUG=0 "$PROGRAM" mutants --output target "$@"
