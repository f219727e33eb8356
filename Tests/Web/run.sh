#!/bin/sh
# Checks and tests the JavaScript client and the pages (Sources/Pages/web): Tests/Web/run.sh
#
# It takes Node, Chromium and TypeScript from apt where there is none. Where that fails the tests that need them are skipped, and
# this says so. Those with a real hub take HUB_BINARY, or what was built last, and are skipped without one. Pictures of
# what the browser showed are in .build/screenshots, or SCREENSHOTS. A page stays open for two minutes meanwhile, or for
# SOAK seconds, over 300 drivers, or DRIVERS. PAGES=Sources/Pages/web has the browser show the files of the tree, not
# those in the executable.
set -eu

cd "$(dirname "$0")/../.."
. Tests/Foreign/environment.sh

command -v node >/dev/null || tools "web tests" nodejs
command -v node >/dev/null || skip "web tests" "node 18 or newer is needed"
if [ "$(node -p 'parseInt(process.versions.node) >= 18')" != true ]; then
  skip "web tests" "node is $(node --version), and 18 or newer is needed"
fi
[ -n "${CHROMIUM:-}" ] || tools "web tests" chromium
command -v tsc >/dev/null || tools "web tests" node-typescript
for file in Sources/Pages/web/*.js Tests/Web/*.mjs Tests/Web/support/*.mjs; do node --check "$file"; done
export SCREENSHOTS="${SCREENSHOTS:-$PWD/.build/screenshots}"
mkdir -p "$SCREENSHOTS"
# Side by side, for all mostly wait: the live map and abuse; the rider's page; and all others behind the page that stays
# open.
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
(
  status=0
  node --test Tests/Web/soak.test.mjs || status=$?
  timeout 900 node --test $(ls Tests/Web/*.test.mjs | grep -v -e /soak -e page.test -e /abuse) || status=$?
  exit $status
) >"$logs/others" 2>&1 &
others=$!
timeout 900 node --test Tests/Web/rider-page.test.mjs >"$logs/rider" 2>&1 &
rider=$!
status=0
for file in page abuse; do timeout 900 node --test Tests/Web/$file.test.mjs || status=$?; done
wait $rider || status=$?
wait $others || status=$?
cat "$logs/rider" "$logs/others"
exit $status
