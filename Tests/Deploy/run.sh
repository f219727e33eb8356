#!/bin/sh
# Runs the tests beside it with a built hub: Tests/Deploy/run.sh [path to locationhub [test modules]]
#
# What they need of Python goes into an environment of its own under .build/. Where that cannot be made, for want of
# Python or of a network, they are skipped, and this says so. A test that needs a tool which is not installed is skipped
# by name; `make test-deploy` installs them. Image, package and guide want the executable of `make release`, which needs
# no Swift where it runs, and root.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
hub=$(realpath -m "${1:-$root/.build/dist/locationhub}")
[ $# -eq 0 ] || shift
environment=$root/.build/deploy-venv
wanted='websockets>=14,<16 httpx-sse>=0.4,<0.5 httpx>=0.27,<1 kubernetes-validate>=1.30'
mark=$environment/ready-$(printf %s "$wanted" | cksum | cut -d' ' -f1)

skip() {
  echo "deploy: skipped: $1"
  exit 0
}

if [ ! -x "$hub" ]; then
  echo "deploy: no executable at $hub: build it first with make release" >&2
  exit 1
fi
if [ ! -f "$mark" ]; then
  command -v python3 >/dev/null || skip "there is no python3"
  rm -rf "$environment"
  python3 -m venv "$environment" 2>/dev/null || skip "python3 cannot make an environment (python3-venv is missing?)"
  "$environment/bin/pip" install --quiet --disable-pip-version-check --timeout 10 --retries 1 $wanted 2>/dev/null ||
    skip "Python's packages could not be installed (no network?)"
  touch "$mark"
fi
cd "$root/Tests/Deploy"
export PATH="$environment/bin:$PATH" LOCATIONHUB="$hub" PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH="$root/Tests/Cluster:$root/Tests/Foreign"
[ $# -gt 0 ] || set -- $(ls test_*.py | sed 's/\.py$//')
exec python -m unittest -v "$@"
