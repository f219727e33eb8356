#!/bin/sh
# Checks and tests the JavaScript client (Sources/Pages/web): Tests/Web/run.sh
#
# It takes Node from apt where there is none. Where that fails the tests are skipped, and this says so. Those with a real
# hub take HUB_BINARY, or what was built last, and are skipped without one.
set -eu

cd "$(dirname "$0")/../.."

if ! command -v node >/dev/null; then
  echo "web tests: there is no node: installing Debian's nodejs"
  root=
  [ "$(id -u)" = 0 ] || root=sudo
  if ! { $root apt-get update -q && $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q nodejs; }; then
    echo "web tests: skipped: node could not be installed (18 or newer is needed)"
    exit 0
  fi
fi
if [ "$(node -p 'parseInt(process.versions.node) >= 18')" != true ]; then
  echo "web tests: skipped: node is $(node --version), and 18 or newer is needed"
  exit 0
fi
for file in Sources/Pages/web/*.js Tests/Web/*.mjs Tests/Web/support/*.mjs; do node --check "$file"; done
exec timeout 180 node --test Tests/Web/*.test.mjs
