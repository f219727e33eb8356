#!/bin/sh
# Checks and tests the JavaScript client and the pages (Sources/Pages/web): Tests/Web/run.sh
#
# It takes Node and Chromium from apt where there is none. Where that fails the tests that need them are skipped, and this
# says so. Those with a real hub take HUB_BINARY, or what was built last, and are skipped without one. SCREENSHOTS=folder
# keeps pictures of what the browser showed. A page stays open for two minutes meanwhile, or for SOAK seconds, over 300
# drivers, or DRIVERS. PAGES=Sources/Pages/web has the browser show the files of the tree, not those in the executable.
set -eu

cd "$(dirname "$0")/../.."

install() {
  root=
  [ "$(id -u)" = 0 ] || root=sudo
  $root apt-get update -q && $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$1"
}

if ! command -v node >/dev/null; then
  echo "web tests: there is no node: installing Debian's nodejs"
  if ! install nodejs; then
    echo "web tests: skipped: node could not be installed (18 or newer is needed)"
    exit 0
  fi
fi
if [ "$(node -p 'parseInt(process.versions.node) >= 18')" != true ]; then
  echo "web tests: skipped: node is $(node --version), and 18 or newer is needed"
  exit 0
fi
if ! command -v chromium >/dev/null && [ -z "${CHROMIUM:-}" ]; then
  echo "web tests: there is no Chromium: installing Debian's chromium"
  install chromium || echo "web tests: those in a browser are skipped: Chromium could not be installed"
fi
for file in Sources/Pages/web/*.js Tests/Web/*.mjs Tests/Web/support/*.mjs; do node --check "$file"; done
soak=$(mktemp)
trap 'rm -f "$soak"' EXIT
node --test Tests/Web/soak.test.mjs >"$soak" 2>&1 &
status=0
timeout 300 node --test $(ls Tests/Web/*.test.mjs | grep -v soak) || status=$?
wait $! || status=$?
cat "$soak"
exit $status
