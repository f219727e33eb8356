#!/bin/sh
# Nanoseconds and, where valgrind is installed, user instructions of one call of each piece of a message's way.
#
#   loadtest/microbench.sh [PIECE …]
#
# Instructions are the difference between 1,000 and 11,000 calls under callgrind, so that start and set-up don't count.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
bench=$root/.build/release/hub-microbench
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

instructions() {
  valgrind --tool=callgrind --callgrind-out-file="$out/cg" "$bench" "$1" "$2" 2>&1 | sed -n 's/.*Collected : //p'
}

"$bench" >"$out/times"
printf '%-24s %10s %14s\n' piece ns instructions
while read -r name time; do
  case " $* " in *" $name "* | "  ") ;; *) continue ;; esac
  count=-
  if command -v valgrind >/dev/null; then count=$((($(instructions "$name" 11000) - $(instructions "$name" 1000)) / 10000)); fi
  printf '%-24s %10s %14s\n' "$name" "$time" "$count"
done <"$out/times"
