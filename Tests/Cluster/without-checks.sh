#!/usr/bin/env bash
# Shows that tests notice where a check between hubs is missing: takes each out of the sources in turn, builds, and runs the
# cluster's simulated tests, some of which must fail then. The sources are as they were afterwards, whatever happens.
#
# `make test-checks`, some ten minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

changed=
restore() { if [ -n "$changed" ]; then git checkout -q -- "$changed" && changed=; fi; }
trap restore EXIT
trap 'exit 130' INT TERM

build() {
  swift build -debug-info-format none --build-tests >.build/without-checks.log 2>&1 \
    || { tail -20 .build/without-checks.log; exit 2; }
}

# NAME FILE WHAT WITHOUT: the one place of WHAT in FILE becomes WITHOUT.
without() {
  git diff --quiet HEAD -- "$2" || { echo "$2 has changes: commit them first" >&2; exit 2; }
  changed=$2
  python3 - "$2" "$3" "$4" <<'P'
import sys
path, what, without = sys.argv[1:]
with open(path) as file:
    text = file.read()
if text.count(what) != 1:
    sys.exit(f"{path}: {text.count(what)} places of: {what}")
with open(path, "w") as file:
    file.write(text.replace(what, without))
P
  build
  if NO_COLOR=1 .build/debug/location-hubPackageTests.xctest --testing-library swift-testing --filter '^ClusterTests\.' \
    >.build/without-checks.log 2>&1
  then
    echo "without $1 all tests pass" >&2
    exit 1
  fi
  # That it is the tests that failed, and what the first one says.
  grep -aq 'Test run with .* failed' .build/without-checks.log || { tail -20 .build/without-checks.log; exit 2; }
  echo "without $1: $(grep -acE '^✘ Test .* failed after' .build/without-checks.log) tests fail," \
    "as $(grep -aoEm 1 '✘ Test "[^"]*"' .build/without-checks.log | cut -c 10-)"
  restore
}

without "the numbers of frames" Sources/Cluster/ClusterNode+Frames.swift \
  'case .gap(let missed): noteGap(index, lane, missed)' 'case .gap: break'
without "the MAC of frames" Sources/Cluster/FrameKeys.swift '$0 | ($1.0 ^ $1.1) } == 0 }' '$0 | ($1.0 ^ $1.1) } >= 0 }'
without "the generations of claims" Sources/Cluster/Claims.swift \
  '!known.isAsked, generation > known.generation {' '!known.isAsked {'
build
