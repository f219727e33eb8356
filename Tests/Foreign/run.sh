#!/bin/sh
# Runs the tests beside it against the built hub: Tests/Foreign/run.sh [path to locationhub]
#
# Python's `websockets` and `httpx-sse` go into an environment of its own under .build/. Where that cannot be made, for want
# of Python or of a network, the tests are skipped, and this says so. CUTS=… and KILLS=… for more cuts and kill -9 than the
# few by default.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
hub=$(realpath -m "${1:-$root/.build/debug/locationhub}")
environment=$root/.build/foreign-venv
wanted='websockets>=13,<16 httpx-sse>=0.4,<0.5 httpx>=0.27,<1'
mark=$environment/ready-$(printf %s "$wanted" | cksum | cut -d' ' -f1)

skip() {
  echo "foreign client: skipped: $1"
  exit 0
}

if [ ! -x "$hub" ]; then
  echo "foreign client: no executable at $hub: build it first with swift build" >&2
  exit 1
fi
if [ ! -f "$mark" ]; then
  command -v python3 >/dev/null || skip "there is no python3"
  rm -rf "$environment"
  python3 -m venv "$environment" 2>/dev/null || skip "python3 cannot make an environment (python3-venv is missing?)"
  "$environment/bin/pip" install --quiet --disable-pip-version-check --timeout 10 --retries 1 $wanted 2>/dev/null ||
    skip "websockets and httpx-sse could not be installed (no network?)"
  touch "$mark"
fi
cd "$root/Tests/Foreign"
LOCATIONHUB=$hub PYTHONDONTWRITEBYTECODE=1 exec "$environment/bin/python" -m unittest -v test_foreign test_events test_service
