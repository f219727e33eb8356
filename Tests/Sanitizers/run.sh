#!/bin/sh
# Builds the tests with a sanitizer, into a folder of its own, and runs them.
#
#   Tests/Sanitizers/run.sh address
#   Tests/Sanitizers/run.sh thread TransportTests
#
# Arguments: the sanitizer (address, thread), and which tests: all where none are named.
#
# HUB_TESTS=brief makes the longest random tests a tenth as long; HUB_SANITIZER is the sanitizer's name, for tests that
# cannot hold under it: memory that was freed stays in the address sanitizer's quarantine.
set -eu
cd "$(dirname "$0")/../.."
sanitizer=$1
case $sanitizer in
address | thread) ;;
*) echo "no such sanitizer: $sanitizer (address, thread)" >&2; exit 2 ;;
esac
export HUB_TESTS=brief HUB_SANITIZER="$sanitizer"
scratch=.build/$sanitizer-sanitizer
# Reports go into files, a process each: programs that tests start inherit this, and what they write on standard error is
# their test's. One with a report also ends with another exit code than its test expects.
reports=$PWD/$scratch/reports
rm -rf "$reports"
mkdir -p "$reports"
export ASAN_OPTIONS="log_path=$reports/report" TSAN_OPTIONS="log_path=$reports/report"
export LSAN_OPTIONS="suppressions=$PWD/Tests/Sanitizers/leaks.txt:print_suppressions=0"
swift build --build-tests --sanitize="$sanitizer" --scratch-path "$scratch"
began=$(date +%s)
outcome=0
swift test --skip-build --sanitize="$sanitizer" --scratch-path "$scratch" --filter "${2:-.}" || outcome=$?
for report in "$reports"/*; do
  [ -f "$report" ] || continue
  cat "$report"
  outcome=1
done
echo "$sanitizer sanitizer: tests took $(($(date +%s) - began)) s, $(find "$reports" -type f | wc -l) reports"
exit "$outcome"
