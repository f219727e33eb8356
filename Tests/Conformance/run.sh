#!/bin/bash
# Both ends of the WebSocket code against the Autobahn suite.
#
#   Tests/Conformance/run.sh quick|full [server|client|both] [OUTDIR]
#
# quick: all cases but the long ones (9, 12, 13), and a sample of those; about a minute. full: all 517, half an hour or
# more. The suite itself is not in this repository: it is run by ../shared/tools/autobahn beside it, which needs Python
# 2.7 and 3 and the network once. Where that is missing nothing is run, and this says so.
#
# Exit code 0: every case passed, strictly (or the suite is missing); 1: a case failed, was not implemented or was not
# strict; 2: asked for wrongly, or something could not be started. Cases that do not pass are run once more, for many of
# them give a peer one second, and the machine may have been busy.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
suite=$root/../shared/tools/autobahn
mode=${1:-quick}
side=${2:-both}
out=${3:-$root/.build/conformance}

case $mode in
  quick)
    sample='9.1.1,9.1.6,9.2.1,9.3.1,9.3.9,9.4.1,9.5.1,9.6.1,9.7.1,9.8.1'
    for group in 12.1 12.2 12.3 12.4 12.5 13.1 13.2 13.3 13.4 13.5 13.6 13.7; do
      sample+=",$group.1,$group.2,$group.5,$group.11"
    done
    all="1.*,2.*,3.*,4.*,5.*,6.*,7.*,10.*,$sample" ;;
  full) all='*' ;;
  *) echo "usage: $0 quick|full [server|client|both] [OUTDIR]" >&2; exit 2 ;;
esac
case $side in
  server | client | both) ;;
  *) echo "usage: $0 quick|full [server|client|both] [OUTDIR]" >&2; exit 2 ;;
esac
if [ ! -x "$suite/run.sh" ]; then
  echo "conformance: skipped, for the Autobahn suite is not there ($root/../shared/tools/autobahn)"
  exit 0
fi
for program in hub-autobahn-server hub-autobahn-client; do
  [ -x "$root/.build/release/$program" ] || { echo "conformance: build $program first (make conformance does)" >&2; exit 2; }
done
mkdir -p "$out" || exit 2

echo_pid=
trap '[ -z "$echo_pid" ] || kill "$echo_pid" 2>/dev/null' EXIT

# run_server CASES DIR
run_server() { "$suite/run.sh" "$url" "$2" --cases "$1" --strict-deflate; }

# run_client CASES DIR. The port is one that was free a moment ago.
run_client() {
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])') || return 3
  "$suite/run-server.sh" "$port" "$2" --cases "$1" --strict-deflate -- "$root/.build/release/hub-autobahn-client"
}

# The ids in a report's index.json that did not pass, with commas between them; 0 when all passed. Informational cases
# have no right answer. The verdicts are those of the suite's README.
not_passed() {
  python3 - "$1/index.json" <<'END'
import json, sys
try:
    agents = json.load(open(sys.argv[1]))
except (OSError, ValueError) as error:
    sys.exit(f"conformance: no results: {error}")
ids = [
    case for results in agents.values() for case, c in results.items()
    if c["behavior"] not in ("OK", "INFORMATIONAL")
    or c["behavior"] == "OK" and c["behaviorClose"] not in ("OK", "INFORMATIONAL")
    or c["behaviorClose"] in ("FAILED", "UNCLEAN")]
print(",".join(sorted(ids)))
END
}

# check NAME: runs all, then what did not pass once more, and says what is left.
check() {
  local log=$out/$1.log bad count
  "run_$1" "$all" "$out/$1" >"$log" 2>&1
  count=$(sed -n 's/^autobahn: .* of \([0-9]*\)$/\1/p' "$log")
  if [ -z "$count" ] || grep -q ' not run' "$log"; then
    cat "$log"
    echo "conformance: $1: the suite did not run to its end"
    return 1
  fi
  bad=$(not_passed "$out/$1") || return 1
  if [ -n "$bad" ]; then
    echo "conformance: $1: once more: $bad"
    "run_$1" "$bad" "$out/$1-again" >"$out/$1-again.log" 2>&1
    bad=$(not_passed "$out/$1-again") || return 1
  fi
  if [ -n "$bad" ]; then
    grep -E '^(FAILED|non-strict|unimplemented)' "$out/$1-again.log"
    echo "conformance: $1: $count cases, not passed: $bad (reports in $out/$1-again)"
    return 1
  fi
  echo "conformance: $1: $count cases, all passed (reports in $out/$1)"
}

status=0
if [ "$side" != client ]; then
  # bash gives a coprocess's output as a file: the first line says where the server listens.
  coproc ECHO { exec "$root/.build/release/hub-autobahn-server" 0; }
  echo_pid=$ECHO_PID
  read -r -t 10 line <&"${ECHO[0]}" && url=${line##* }
  case ${url:-} in
    ws://*) check server || status=1 ;;
    *) echo "conformance: hub-autobahn-server did not start" >&2; exit 2 ;;
  esac
fi
if [ "$side" != server ]; then check client || status=1; fi
exit $status
