#!/usr/bin/env bash
# Durable ingest: batches of 50 fixes, each acked when it is on the disk, and what the disk itself takes for that.
#
#   loadtest/ingest.sh [DIR [options of hub-loadtest]]      100,000 fixes/s for 20 s; DIR lies on the disk in question;
#                                                           options but for those that it sets itself
#
# The journal's part of the ack's time is what is over the disk's own: the probe writes as much as the hub's groups had,
# before and behind the run, for a shared disk is not the same all the time.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=$(mktemp -d "${1:-${TMPDIR:-/tmp}}/ingest-XXXXXX")
trap 'rm -rf "$directory"' EXIT
shift || true
probe() { .build/release/hub-microbench disk "$directory" "$1"; }
figure() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" "$directory/run.json" | head -n 1; }

echo "machine: $(nproc) × $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(uname -sr)," \
  "$(df --output=fstype "$directory" | tail -n 1), load $(cut -d' ' -f1 /proc/loadavg)"
probe 10000
.build/release/hub-loadtest batch --drivers 400 --rate 5 --batch 50 --warm-up 3 --duration 20 "$@" \
  --json "$directory/run.json" -- --data "$directory/data" --session-rate 0 || echo "(see what is said of it above)"
awk -v fixes="$(figure fixesPerSecond)" -v groups="$(figure journalGroups)" \
  'BEGIN { printf "fixes for each commit: %.0f\n", fixes * 20 / groups }'
probe "$(figure journalBytes | cut -d. -f1)"
