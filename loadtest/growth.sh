#!/bin/sh
# User instructions of a fix, a move of the driver index and a publication, by how much there is round them.
#
#   loadtest/growth.sh [fix|move|publish SIZE]
#
# Counted by callgrind within `step` alone, 10,000 calls of it. A million drivers take some minutes to set up under it.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
bench=$root/.build/release/hub-microbench
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

count() {
  valgrind --tool=callgrind --toggle-collect='*Growing*step*' --callgrind-out-file="$out/cg" \
    "$bench" growth "$1" "$2" 10000 >"$out/said" 2>&1 || { cat "$out/said" >&2; exit 1; }
  events=$(sed -n 's/.*Collected : //p' "$out/said")
  [ -n "$events" ] || { echo "callgrind counted nothing:" >&2; cat "$out/said" >&2; exit 1; }
  echo "$1 $2 $((events / 10000)) instructions"
}

case $# in
  0) ;;
  2) count "$1" "$2"; exit ;;
  *) echo "usage: loadtest/growth.sh [fix|move|publish SIZE]" >&2; exit 2 ;;
esac
for size in 1000 10000 100000 1000000; do count fix $size; done
for size in 1000 10000 100000 1000000; do count move $size; done
for size in 1 10 100 1000 10000 100000; do count publish $size; done
