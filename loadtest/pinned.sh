#!/usr/bin/env bash
# hub-loadtest with cores of its own: loadtest/pinned.sh SCENARIO|figures|growth|capacity|abuse [options …]
#
# The load gets the last core, and the hub core 0 of two and the first two of more: as many as any load here has loops. What
# is measured is only worth something on a machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
verb=${1:?name a verb or a scenario of hub-loadtest}
shift
last=$(($(nproc) - 1))
pin=()
options=()
case $verb in
  abuse) ;;  # has a thread of its own for each of its parts
  compare | report | bench | abuse-search | feed | drivers | return)
    echo "$verb has no cores to choose: .build/release/hub-loadtest $verb" >&2
    exit 2
    ;;
  *) options=(--threads 1) ;;
esac
if [ "$last" -gt 0 ] && command -v taskset >/dev/null; then
  pin=(taskset -c "$last")
  options+=(--server-cpu "0-$((last > 1 ? 1 : 0))")
fi
exec "${pin[@]}" .build/release/hub-loadtest "$verb" "${options[@]}" "$@"
