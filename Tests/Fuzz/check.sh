#!/bin/sh
# Whether every fuzz target compiles, against the modules of `swift build --build-tests`. They are built only when they are run
# (run.sh in this folder), which is seldom: a change that they have to follow would be noticed weeks later.
set -eu
cd "$(dirname "$0")/../.."
# What a module has for the others of its package is for the package's name, which SwiftPM takes from the folder's.
package=$(sed -n 's/.*"-package-name","\([^"]*\)".*/\1/p' .build/debug.yaml | head -n 1)
flags="-typecheck -swift-version 6 -parse-as-library -enable-testing -package-name $package -I .build/debug/Modules"
for feature in ExistentialAny InternalImportsByDefault MemberImportVisibility; do
  flags="$flags -enable-upcoming-feature $feature"
done
for library in CLinux COpenSSL CZlib; do flags="$flags -I Sources/$library"; done
failed=""
for target in Tests/Fuzz/fuzz_*.swift; do
  # shellcheck disable=SC2086 # flags are words
  swiftc $flags "$target" Tests/Fuzz/Pieces.swift || failed="$failed $target"
done
[ -z "$failed" ] || { echo "Fuzz targets that do not compile:$failed" >&2; exit 1; }
