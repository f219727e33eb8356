# For scripts that test with what is not Swift's: `. environment.sh`, then `tools NAME TOOL…` and
# `environment NAME FOLDER PACKAGE…`.
#
# The latter makes an environment of Python with these packages in FOLDER, unless it is there, and sets `python` to its
# interpreter. Where that cannot be done, for want of Python or of a network, the script ends with 0 and says that NAME is skipped.
environment() {
  name=$1 folder=$2
  shift 2
  mark=$folder/ready-$(printf '%s ' "$@" | cksum | cut -d' ' -f1)
  python=$folder/bin/python
  [ ! -f "$mark" ] || return 0
  command -v python3 >/dev/null || skip "$name" "there is no python3"
  rm -rf "$folder"
  python3 -m venv "$folder" 2>/dev/null || skip "$name" "python3 cannot make an environment (python3-venv is missing?)"
  "$folder/bin/pip" install --quiet --disable-pip-version-check --timeout 10 --retries 1 "$@" 2>/dev/null ||
    skip "$name" "$* could not be installed (no network?)"
  touch "$mark"
}

# `tools NAME TOOL…`: takes from apt what is missing, one script after the other. What can't be had is reported, for the
# tests that need it are skipped.
tools() {
  name=$1 missing=
  shift
  for tool in "$@"; do command -v "$tool" >/dev/null || missing="$missing $tool"; done
  [ -n "$missing" ] || return 0
  echo "$name: installing$missing"
  as_root=
  [ "$(id -u)" = 0 ] || as_root=sudo
  {
    flock 9 && $as_root apt-get update -q 9>&- &&
      $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q $missing 9>&-
  } >/dev/null 2>&1 9>"${TMPDIR:-/tmp}/location-hub-apt.$(id -u).lock" ||
    echo "$name: not all of$missing could be installed (no network?)"
}

skip() {
  echo "$1: skipped: $2"
  exit 0
}

# `needs_hub NAME PATH`: ends with 1 where no hub was built.
needs_hub() {
  if [ ! -x "$2" ]; then
    echo "$1: no executable at $2: build it first with swift build" >&2
    exit 1
  fi
}
