#!/bin/sh
# Runs the tests beside it with a built hub: Tests/Deploy/run.sh [path to locationhub [test modules]]
#
# What they need of Python goes into an environment of its own under .build/. Where that cannot be made, for want of
# Python or of a network, they are skipped, and this says so. Tools come from apt; a test that needs one which could not be
# installed is skipped by name. Image, package and guide want the executable of `make release`, which needs no Swift where
# it runs, and root.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
hub=$(realpath -m "${1:-$root/.build/dist/locationhub}")
[ $# -eq 0 ] || shift
. "$root/Tests/Foreign/environment.sh"

needs_hub deploy "$hub"
tools deploy nginx haproxy openssl curl
ldd "$hub" | grep -q libswiftCore || tools deploy lintian buildah prometheus
environment deploy "$root/.build/deploy-venv" 'websockets>=14,<16' 'httpx-sse>=0.4,<0.5' 'httpx>=0.27,<1' 'kubernetes-validate>=1.30'
cd "$root/Tests/Deploy"
export PATH="$(dirname "$python"):$PATH" LOCATIONHUB="$hub" PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH="$root/Tests/Cluster:$root/Tests/Foreign"
[ $# -gt 0 ] || set -- $(ls test_*.py | sed 's/\.py$//')
exec python -m unittest -v "$@"
