#!/bin/sh
# Runs the tests beside it against the built hub: Tests/Foreign/run.sh [path to locationhub]
#
# Python's `websockets`, `httpx-sse`, `standardwebhooks` and others go into an environment of its own under .build/, and
# nats-server and redis-server are taken from apt. Where that cannot be done, for want of Python or of a network, tests
# are skipped, and this says so. CUTS=… and KILLS=… for more cuts and kill -9 than the few by default, EVENTS=… for more
# webhooks, FORGED=… for more refresh tokens that nobody gave: `make foreign-full`.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
hub=$(realpath -m "${1:-$root/.build/debug/locationhub}")
. "$root/Tests/Foreign/environment.sh"

needs_hub "foreign client" "$hub"
environment "foreign client" "$root/.build/foreign-venv" 'websockets>=13,<16' 'httpx-sse>=0.4,<0.5' 'httpx>=0.27,<1' \
  'gtfs-realtime-bindings>=1,<4' 'standardwebhooks>=1,<2' 'cryptography>=42' 'nats-py>=2,<3' 'redis>=5,<9' \
  'pmtiles>=3.4,<4'
tools "foreign client" nats-server redis-server
cd "$root/Tests/Foreign"
export LOCATIONHUB="$hub" PYTHONDONTWRITEBYTECODE=1
# Both halves mostly wait, for restarts and for time to pass: side by side they take half as long. Each has ports of its
# own, as the tests of pages have that may run beside them.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
PORTS=23000-26000 "$python" -m unittest -v test_webhooks test_service >"$log" 2>&1 &
status=0
PORTS=20000-23000 "$python" -m unittest -v test_streams test_credentials test_backends test_foreign test_events \
  test_transit test_tiles test_measuring || status=$?
wait $! || status=$?
cat "$log"
exit $status
