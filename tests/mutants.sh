#!/usr/bin/env bash
# mutants.sh [OPTION...] - changes decision code, one line at a time, and checks that a test fails. Takes hours.
#
# .cargo/mutants.toml lists the code to change. Options are those of cargo-mutants: `--file services/baremetal-core/src/plan.rs` tries one
# file, `--shard 0/8` an eighth. The result is in target/mutants.out. For a mutant that survives, add a test or explain it in
# tests/README.md.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
cd "$HERE/.."
PROGRAM=$("$HERE/tool.sh" cargo-mutants 27.1.0)
# Runs only the tests of the changed crate, not those of the whole workspace.
exec env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS CARGO_PROFILE_DEV_DEBUG=0 "$PROGRAM" mutants --output target "$@"
