#!/bin/sh
# Builds the tests with a sanitizer, into a folder of its own, and runs them.
#
#   Tests/Sanitizers/run.sh address
#   Tests/Sanitizers/run.sh thread HubTests
#
# Arguments: the sanitizer, and which tests (all). HUB_TESTS=brief makes the longest random tests a tenth as long;
# HUB_SANITIZER tells tests which one there is, for what cannot hold under it: memory that was freed stays in the address
# sanitizer's quarantine.
set -eu
cd "$(dirname "$0")/../.."
sanitizer=$1
filter=${2:-.}
export HUB_TESTS=brief HUB_SANITIZER="$sanitizer"
# Programs that tests start inherit this. One with a report ends with another exit code than its test expects.
export LSAN_OPTIONS="suppressions=$PWD/Tests/Sanitizers/leaks.txt:print_suppressions=0"
swift test --sanitize="$sanitizer" --scratch-path ".build/$sanitizer-sanitizer" --filter "$filter"
