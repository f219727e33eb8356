#!/bin/sh
# Runs the tests beside it with real hubs and a real engine: Tests/Cluster/run.sh [path to locationhub]
#
# Python's `websockets` goes into an environment of its own under .build/, and redis-server comes from apt where neither
# it nor valkey-server is installed, and haproxy. Where that cannot be had the tests are skipped, and this says so.
# CUTS=…, SEED=…, ROVERS=… and ROUNDS=… for other cuts of links, and for more drivers that come back more often.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
hub=$(realpath -m "${1:-$root/.build/debug/locationhub}")
. "$root/Tests/Foreign/environment.sh"

needs_hub cluster "$hub"
has_engine() { command -v redis-server >/dev/null || command -v valkey-server >/dev/null; }
has_engine || tools cluster redis-server
has_engine || skip cluster "there is no redis-server"
command -v haproxy >/dev/null || tools cluster haproxy
command -v haproxy >/dev/null || skip cluster "there is no haproxy"
environment cluster "$root/.build/cluster-venv" 'websockets>=13,<16'
cd "$root/Tests/Cluster"
export LOCATIONHUB="$hub" PYTHONDONTWRITEBYTECODE=1
# Each has hubs and an engine of its own, and mostly waits: side by side, the second's words behind the first's.
log=$(mktemp)
PORTS=26000-32000 "$python" -m unittest -v test_faults >"$log" 2>&1 &
faults=$!
trap 'kill $faults 2>/dev/null || :; rm -f "$log"' EXIT
status=0
PORTS=20000-26000 "$python" -m unittest -v test_cluster || status=$?
wait $faults || status=$?
cat "$log"
exit $status
