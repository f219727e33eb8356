#!/bin/sh
# Builds one fuzz target with the modules it imports, all instrumented, and runs it.
#
#   Tests/Fuzz/run.sh fuzz_frames 60
#
# Arguments: the file's name and the seconds to run. The file says in a line "// modules: …" which modules it needs, in
# the order of their dependencies, and in a line "// libraries: …" which system libraries. The corpus is kept in
# .build/fuzz/<name>/corpus; a crash leaves its input in .build/fuzz/<name>.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
name=$1
seconds=$2
modules=$(sed -n 's|^// modules: ||p' "$root/Tests/Fuzz/$name.swift")
libraries=$(sed -n 's|^// libraries: ||p' "$root/Tests/Fuzz/$name.swift" | sed 's/[^ ][^ ]*/-l&/g')
[ -n "$modules" ] || { echo "$name.swift has no line '// modules: …'" >&2; exit 2; }
out=$root/.build/fuzz/$name
modules_out=$root/.build/fuzz/modules
mkdir -p "$out/corpus" "$modules_out"
cd "$out"

. "$root/Tests/Fuzz/flags.sh"
flags="$flags -O -sanitize=fuzzer,address -use-ld=lld -I $modules_out"
flags="$flags -package-name location-hub"  # what one module has for the others of the package
objects=""
for module in $modules; do
  case $module in HubCore | HubRuntime) folder=$module ;; *) folder=${module#Hub} ;; esac  # as Package.swift has it
  source=$root/Sources/$folder
  [ -d "$source" ] || source=$root/Tests/$folder
  # Targets share modules. One is made again where a file of it, this one, or one that comes before it here, is newer.
  object=$modules_out/$module.o
  isOld=no
  [ -f "$object" ] && [ -z "$(find "$source" "$root/Tests/Fuzz/run.sh" -newer "$object")" ] || isOld=yes
  for earlier in $objects; do [ "$object" -nt "$earlier" ] || isOld=yes; done
  # shellcheck disable=SC2086,SC2046 # flags are words, and no path in the repository has spaces
  [ $isOld = no ] || swiftc $flags -wmo -module-name "$module" -emit-module \
    -emit-module-path "$modules_out/$module.swiftmodule" -emit-object -o "$object" $(find "$source" -name '*.swift')
  objects="$objects $object"
done
# shellcheck disable=SC2086
swiftc $flags -wmo -module-name "$name" "$root/Tests/Fuzz/$name.swift" "$root/Tests/Fuzz/Pieces.swift" $objects $libraries -o "$name"
dictionary=""
if [ -f "$root/Tests/Fuzz/$name.dict" ]; then dictionary="-dict=$root/Tests/Fuzz/$name.dict"; fi
# shellcheck disable=SC2086
"./$name" -max_total_time="$seconds" -max_len=1024 -print_final_stats=1 $dictionary corpus
