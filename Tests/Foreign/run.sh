#!/bin/sh
# Runs test_foreign.py against the built hub: Tests/Foreign/run.sh [path to locationhub]
#
# Python's `websockets` goes into an environment of its own under .build/. Where that cannot be made, for want of Python or
# of a network, the tests are skipped, and this says so.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
hub=$(realpath -m "${1:-$root/.build/debug/locationhub}")
environment=$root/.build/foreign-venv
wanted='websockets>=13,<16'

skip() {
  echo "foreign client: skipped: $1"
  exit 0
}

if [ ! -x "$hub" ]; then
  echo "foreign client: no executable at $hub: build it first with swift build" >&2
  exit 1
fi
if [ ! -f "$environment/ready" ]; then
  command -v python3 >/dev/null || skip "there is no python3"
  rm -rf "$environment"
  python3 -m venv "$environment" 2>/dev/null || skip "python3 cannot make an environment (python3-venv is missing?)"
  "$environment/bin/pip" install --quiet --disable-pip-version-check --timeout 10 --retries 1 "$wanted" 2>/dev/null ||
    skip "websockets could not be installed (no network?)"
  touch "$environment/ready"
fi
cd "$root/Tests/Foreign"
LOCATIONHUB=$hub PYTHONDONTWRITEBYTECODE=1 exec "$environment/bin/python" test_foreign.py
