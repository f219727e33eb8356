#!/bin/sh
# Runs the tests beside it with real hubs and a real engine: Tests/Cluster/run.sh [path to locationhub]
#
# Python's `websockets` goes into an environment of its own under .build/. Where that cannot be made, or no redis-server or
# valkey-server is installed, the tests are skipped, and this says so. CUTS=… and SEED=… for other cuts of links.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
hub=$(realpath -m "${1:-$root/.build/debug/locationhub}")
environment=$root/.build/cluster-venv

skip() {
  echo "cluster: skipped: $1"
  exit 0
}

if [ ! -x "$hub" ]; then
  echo "cluster: no executable at $hub: build it first with swift build" >&2
  exit 1
fi
command -v redis-server >/dev/null || command -v valkey-server >/dev/null || skip "there is no redis-server"
if [ ! -f "$environment/ready" ]; then
  command -v python3 >/dev/null || skip "there is no python3"
  rm -rf "$environment"
  python3 -m venv "$environment" 2>/dev/null || skip "python3 cannot make an environment (python3-venv is missing?)"
  "$environment/bin/pip" install --quiet --disable-pip-version-check --timeout 10 --retries 1 'websockets>=13,<16' \
    2>/dev/null || skip "websockets could not be installed (no network?)"
  touch "$environment/ready"
fi
cd "$root/Tests/Cluster"
LOCATIONHUB=$hub PYTHONDONTWRITEBYTECODE=1 exec "$environment/bin/python" -m unittest -v test_cluster
