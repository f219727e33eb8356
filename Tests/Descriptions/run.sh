#!/bin/sh
# Holds protocol/openapi.yaml, asyncapi.yaml and schemas.yaml to the examples, to what must be refused, and to the built
# hub: Tests/Descriptions/run.sh [path to locationhub]
#
# The validators and schemathesis go into an environment of Python under .build/. Where that cannot be made, for want of
# Python or of a network, the tests are skipped, and this says so. FUZZ_SECONDS=… has schemathesis run for so long.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
hub=$(realpath -m "${1:-$root/.build/debug/locationhub}")
. "$root/Tests/Foreign/environment.sh"

needs_hub "descriptions" "$hub"
environment "descriptions" "$root/.build/descriptions-venv" 'openapi-spec-validator>=0.9,<0.10' 'asyncapi3==0.0.2' \
  'jsonschema>=4.26,<5' 'rfc3339-validator>=0.1.4,<1' 'PyYAML>=6,<7' 'schemathesis>=4.32,<5'
cd "$root/Tests/Descriptions"
# Ports of its own, for the cluster's tests may run beside it.
export PORTS="${PORTS:-17000-20000}" LOCATIONHUB=$hub PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/Tests/Descriptions:$root/Tests/Foreign
exec "$python" -m unittest -v test_schemas test_asyncapi test_openapi test_fuzz
