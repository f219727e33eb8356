#!/usr/bin/env bash
# The functions that a start calls, with and without a journal, for the linker: loadtest/startup-order.sh [HUB]
#
# Counted by callgrind. Names that a later build does not have are passed over, and new ones lie elsewhere: it is worth
# running again when a start has changed much, not with every change.
set -euo pipefail
cd "$(dirname "$0")/.."
hub=${1:-.build/release/locationhub}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

start() {
  coproc valgrind --tool=callgrind --demangle=no --callgrind-out-file="$out/$1" \
    "$hub" serve --port 0 --loops 1 --dev-auth "${@:2}" 2>/dev/null
  local process=$COPROC_PID line
  while read -r line <&"${COPROC[0]}" && [[ $line != listening* ]]; do :; done
  kill "$process"
  wait "$process" || true
}
start without --no-journal
start with --data "$out/data"

{
  echo '# What a start of the hub calls, one function a line: they are linked side by side (`make startup-order`).'
  awk '
    /^c?fn=/ {
      name = $0
      sub(/^c?fn=\([0-9]+\) ?/, "", name)
      match($0, /\([0-9]+\)/)
      id = FILENAME substr($0, RSTART, RLENGTH)
      if (name != "") names[id] = name
      name = names[id]
      sub(/\047.*/, "", name)
      if (name !~ /^0x/ && !seen[name]++) print name
    }' "$out/without" "$out/with"
} >deploy/startup.order
