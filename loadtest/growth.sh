#!/bin/sh
# User instructions of a fix, a move of the driver index and a publication, by how much there is round them.
#
#   loadtest/growth.sh [PIECE SIZE]
#
# Counted by callgrind within `step` alone, 10,000 calls of it. A million drivers take some minutes to set up under it.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
bench=$root/.build/release/hub-microbench
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

count() {
  events=$(valgrind --tool=callgrind --toggle-collect='*Growing*step*' --callgrind-out-file="$out/cg" \
    "$bench" growth "$1" "$2" 10000 2>&1 | sed -n 's/.*Collected : //p')
  echo "$1 $2 $((events / 10000)) instructions"
}

if [ $# -eq 2 ]; then
  count "$1" "$2"
  exit
fi
for size in 1000 10000 100000 1000000; do count fix $size; done
for size in 1000 10000 100000 1000000; do count move $size; done
for size in 1 10 100 1000 10000 100000; do count publish $size; done
