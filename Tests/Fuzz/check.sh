#!/bin/sh
# Whether every fuzz target compiles, against the modules of `swift build --build-tests`. They are built only when they are run
# (run.sh in this folder), which is seldom: a change that they have to follow would be noticed weeks later.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
# What a module has for the others of its package is for the package's name, which SwiftPM takes from the folder's.
package=$(sed -n 's/.*"-package-name","\([^"]*\)".*/\1/p' "$root/.build/debug.yaml" | head -n 1)
[ -n "$package" ] || { echo "$root/.build/debug.yaml does not name the package" >&2; exit 1; }
. "$root/Tests/Fuzz/flags.sh"
flags="$flags -typecheck -package-name $package -I $root/.build/debug/Modules"
failed=""
for target in "$root"/Tests/Fuzz/fuzz_*.swift; do
  # shellcheck disable=SC2086 # flags are words, and no path in the repository has spaces
  swiftc $flags "$target" "$root/Tests/Fuzz/Pieces.swift" || failed="$failed $(basename "$target")"
done
[ -z "$failed" ] || { echo "Fuzz targets that do not compile:$failed" >&2; exit 1; }
