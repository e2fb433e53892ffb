#!/usr/bin/env bash
# mutants.sh [OPTION...] - changes decision code in one place at a time, and checks that a test fails.
#
# .cargo/mutants.toml lists the code to change. Options select mutants and are those of cargo-mutants: `-p lease` tries one crate, `--file
# services/baremetal-core/src/plan.rs` one file. tests/mutants compiles all mutants at once and runs them; cargo-mutants then runs those that
# must be compiled alone. For a mutant that survives, add a test or explain it in tests/README.md.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
cd "$HERE/.."
PROGRAM=$("$HERE/tool.sh" cargo-mutants 27.1.0)
# The daemons and the APIs have tests of their own that reach the cores and the conductors.
cargo run --quiet -p mutants -- --cargo-mutants "$PROGRAM" --also baremetal-conductor --also baremetal-api --also baremetal \
  --also cluster-conductor --also cluster-api --also cluster -- "$@"

mapfile -t ALONE < <(sed -E 's/[][(){}.*+?^$|\\]/\\&/g; s/.*/^&$/' target/mutants/outcomes/left-out)
[ "${#ALONE[@]}" -gt 0 ] || exit 0
echo "${#ALONE[@]} mutants are compiled alone"
exec env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS CARGO_PROFILE_DEV_DEBUG=0 "$PROGRAM" mutants --output target "${ALONE[@]/#/--re=}"
