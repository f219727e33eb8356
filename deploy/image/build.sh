#!/bin/sh
# Makes an image of a built executable with buildah: deploy/image/build.sh [executable [name of the image]]
#
# In it are the executable, the libraries that it is linked with, where the loader looks for them, and the certificates
# of the authorities that this machine trusts, for verbs that are clients. STORAGE_DRIVER and BUILDAH_ISOLATION are
# buildah's own variables: vfs and chroot where it runs in a container itself.
set -eu
umask 022

here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${1:-$here/../../.build/dist/locationhub}")
name=${2:-locationhub:$("$program" version | cut -d' ' -f2)}
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir -p "$context/data"
install -D -m 755 "$program" "$context/root/locationhub"
# Of each library, and of the loader, the path by which the executable finds it.
ldd "$program" | awk '$3 ~ /^\// {print $3} $1 ~ /^\// {print $1}' | while read -r library; do
  install -D -m 755 "$library" "$context/root$library"
done
install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$context/root/etc/ssl/certs/ca-certificates.crt"
buildah bud --quiet --format docker --file "$here/Containerfile" --tag "$name" "$context" >&2
echo "$name"
