#!/usr/bin/env bash
# Builds the package in this folder, which depends on the repository as anybody's would, and runs its programs with a hub:
# Tests/ForeignPackage/run.sh [path to locationhub]
#
# Among them are the code of the README and of the tutorials, as it stands there. What was built is kept in
# .build/foreign-package, so that only what has changed is built again.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
hub=$(realpath -m "${1:-$root/.build/debug/locationhub}")
[ -x "$hub" ] || { echo "foreign package: no executable at $hub: build it first with swift build" >&2; exit 1; }

place=$root/.build/foreign-package
mkdir -p "$place/Sources/"{ReadmeDriver,ReadmeRider,TutorialDriver,TutorialRider}
ln -sfn "$root" "$place/location-hub"

# Copies what has another content: what is the same is not built again.
put() { cmp -s "$1" "$2" || { mkdir -p "$(dirname "$2")"; cp "$1" "$2"; }; }
draft=$(mktemp)
running=()
finish() {
  for process in "${running[@]}"; do kill "$process" 2>/dev/null || true; done
  rm -rf "$draft" "$draft.swift" "$place/run"
}
trap finish EXIT

put "$root/Tests/ForeignPackage/Package.swift" "$place/Package.swift"
put "$root/Tests/ForeignPackage/Sources/Geo/Place.swift" "$place/Sources/Geo/Place.swift"
put "$root/Tests/ForeignPackage/Sources/Check/main.swift" "$place/Sources/Check/main.swift"
# The n-th block of Swift in the README.
block() { awk -v n="$1" '/^```swift/ { c++; if (c == n) { on = 1; next } } /^```/ { on = 0 } on' "$root/README.md"; }
# A program as it stands, but for the hub's address: it is that of the hub which is started here.
program() {
  grep -q '"ws://127.0.0.1:8080/v1/ws"' "$1" || { echo "foreign package: $2 names no hub" >&2; exit 1; }
  sed 's|"ws://127.0.0.1:8080/v1/ws"|hubAddress|' "$1" > "$draft.swift"
  put "$draft.swift" "$place/Sources/$2/main.swift"
  printf 'import Foundation\n\nlet hubAddress = ProcessInfo.processInfo.environment["HUB_URL"]!\n' > "$draft.swift"
  put "$draft.swift" "$place/Sources/$2/HubAddress.swift"
}
block 1 > "$draft" && program "$draft" ReadmeDriver
block 2 > "$draft" && program "$draft" ReadmeRider
tutorials=$root/Sources/LocationHubClient/Documentation.docc/Resources
program "$tutorials/driver-4.swift" TutorialDriver
program "$tutorials/rider-4.swift" TutorialRider

cd "$place"
swift build -q -debug-info-format none
programs=$(swift build --show-bin-path)

mkdir -p run && cd run
coproc HUB { exec "$hub" serve --port 0 --dev-auth --no-journal --log-level error 2>hub.errors; }
running+=("$HUB_PID")
read -r line <&"${HUB[0]}"
url=ws://$(sed 's|.*ws://\([^/]*\)/.*|\1|' <<< "$line")/v1/ws

timeout 300 "$programs/Check" "$url"

# A rider's program must come to see what the driver's last line brings about.
meet() {
  local driver=$1 rider=$2 expected=$3
  # Line by line: what is printed into a file is kept back otherwise.
  HUB_URL=$url stdbuf -oL "$programs/$rider" > "$rider.out" 2>&1 &
  running+=($!)
  HUB_URL=$url timeout 300 "$programs/$driver" > "$driver.out" 2>&1 || { cat "$driver.out"; exit 1; }
  local deadline=$((SECONDS + 120))
  until grep -q "$expected" "$rider.out"; do
    [ $SECONDS -lt $deadline ] || { echo "foreign package: $rider has not seen $expected:"; cat "$rider.out"; exit 1; }
    sleep 0.1
  done
  echo "foreign package: $driver and $rider run as they stand"
}
meet ReadmeDriver ReadmeRider driverEnRoute
meet TutorialDriver TutorialRider 'on the way'
