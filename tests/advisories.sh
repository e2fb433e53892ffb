#!/usr/bin/env bash
# advisories.sh CARGO_DENY - checks all dependencies against the advisories of RustSec, which are a git repository.
#
# The script keeps a clone in $BEDPLATE_CACHE/advisory-dbs and updates it. Where the repository cannot be reached, an earlier clone is used.
# Without any clone nothing is checked, and the last line of the output says so.
#
#   BEDPLATE_ADVISORIES=FOLDER    uses this clone, and reaches for nothing
#   BEDPLATE_ADVISORIES=required  fails if there is no clone
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
# shellcheck source-path=SCRIPTDIR source=real/debian.sh disable=SC1091
. "$HERE/real/debian.sh"

DENY=${1:?usage: advisories.sh CARGO_DENY}
URL=https://github.com/RustSec/advisory-db
# The folder in which cargo-deny 0.20 looks for a clone of this URL.
NAME=advisory-db-3157b0e258782691
# The time limit of the network, in seconds.
PATIENCE=60
DATABASES=$BEDPLATE_CACHE/advisory-dbs

is_clone() { git -C "$1" rev-parse --quiet --verify HEAD >/dev/null 2>&1; }

# Clones the repository, or updates the clone. A clone that was interrupted is never used.
update() {
  local own=$DATABASES/$NAME
  mkdir -p "$DATABASES"
  if is_clone "$own"; then
    GIT_TERMINAL_PROMPT=0 timeout "$PATIENCE" git -C "$own" pull --quiet --ff-only || say "the advisories cannot be updated"
    return
  fi
  rm -rf "$own" "$own.new"
  if GIT_TERMINAL_PROMPT=0 timeout "$PATIENCE" git clone --quiet --depth 1 "$URL" "$own.new"; then mv "$own.new" "$own"; fi
}

mkdir -p "$BEDPLATE_CACHE"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
case ${BEDPLATE_ADVISORIES:-} in
  "" | required)
    exec 9>"$BEDPLATE_CACHE/advisory-dbs.lock"
    flock 9
    update
    ;;
  *)
    is_clone "$BEDPLATE_ADVISORIES" || die "BEDPLATE_ADVISORIES: $BEDPLATE_ADVISORIES is no clone of $URL"
    DATABASES=$WORK
    ln -s "$(readlink -f "$BEDPLATE_ADVISORIES")" "$WORK/$NAME"
    ;;
esac

if ! is_clone "$DATABASES/$NAME"; then
  [ "${BEDPLATE_ADVISORIES:-}" != required ] || die "BEDPLATE_ADVISORIES: there is no clone of $URL, and it cannot be reached"
  echo "NOT CHECKED: advisories of RustSec, because $URL cannot be reached and there is no clone (tests/README.md)"
  exit
fi
{
  printf '[advisories]\ndb-path = "%s"\ndb-urls = ["%s"]\n\n' "$DATABASES" "$URL"
  cat "$HERE/../.deny.toml"
} >"$WORK/deny.toml"
say "checking the advisories of $(git -C "$DATABASES/$NAME" log -1 --format=%cs)"
"$DENY" --config "$WORK/deny.toml" --locked --offline --log-level error check advisories
