#!/usr/bin/env bash
# What a message costs the hub on this machine, in time: loadtest/figures.sh [options of `locationhub serve`]
#
# The hub gets core 0 and the generator core 1 where there are two; a run is only worth something on a machine that does
# nothing else. Figures for the README come from a file in loadtest/results/ that names machine and command.
set -euo pipefail
cd "$(dirname "$0")/.."
loadtest=.build/release/hub-loadtest
pin=()
server=()
if [ "$(nproc)" -gt 1 ] && command -v taskset >/dev/null; then
  pin=(taskset -c 1)
  server=(--server-cpu 0)
fi
echo "machine: $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(uname -sr), load $(cut -d' ' -f1 /proc/loadavg)"
for scenario in trip fan-out idle; do
  "${pin[@]}" "$loadtest" "$scenario" "${server[@]}" --threads 1 -- "$@" || echo "(see what is said of it above)"
done
