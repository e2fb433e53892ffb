#!/usr/bin/env bash
# mutants.sh [OPTION...] - changes decision code in one place at a time, and checks that a test fails.
#
# .cargo/mutants.toml lists the code to change. Options select mutants and are those of cargo-mutants: `-p lease` tries one crate,
# `-p baremetal-core --re src/plan.rs` one file and the deleted fields of its crate. tests/mutants compiles all mutants at once and runs
# them; cargo-mutants then runs those that must be compiled alone. Fails if a mutant survives that tests/mutants/explained.toml does not
# explain.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
cd "$HERE/.."
PROGRAM=$("$HERE/tool.sh" cargo-mutants 27.1.0)
# The daemons and the APIs have tests of their own that reach the cores and the conductors.
mutants() { cargo run --quiet -p mutants -- --cargo-mutants "$PROGRAM" "$@"; }
mutants --also baremetal-conductor --also baremetal-api --also baremetal --also cluster-conductor --also cluster-api --also cluster -- "$@"

rm -rf target/mutants.out
mapfile -t ALONE < <(sed -E 's/[][(){}.*+?^$|\\]/\\&/g; s/.*/^&$/' target/mutants/outcomes/left-out)
if [ "${#ALONE[@]}" -gt 0 ]; then
  echo "${#ALONE[@]} mutants are compiled alone"
  # Only the files of these mutants are examined: cargo-mutants deletes fields of struct expressions whether --re names the change or not.
  {
    printf 'examine_globs = [\n'
    cut -d: -f1 target/mutants/outcomes/left-out | sort -u | sed 's/.*/  "&",/'
    printf ']\n'
    sed '/^examine_globs/,/^]/d' .cargo/mutants.toml
  } >target/mutants/alone.toml
  STATUS=0
  env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS CARGO_PROFILE_DEV_DEBUG=0 \
    "$PROGRAM" mutants --config target/mutants/alone.toml --output target "${ALONE[@]/#/--re=}" || STATUS=$?
  # 2 and 3: a mutant survives, a test does not end.
  case $STATUS in 0 | 2 | 3) ;; *) exit "$STATUS" ;; esac
fi
mutants --check
