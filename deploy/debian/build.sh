#!/bin/sh
# Packs a built executable for Debian and Ubuntu: deploy/debian/build.sh [executable] [folder for the .deb]
#
# Nothing is compiled here, so debhelper would have little to do: the files are laid out and packed by dpkg-deb. The
# version is the executable's own, with the ~ that sorts a development version before its release, then the commit's time,
# so that apt takes a later one for newer, and the commit. DEBFULLNAME and DEBEMAIL say who packs it, as for Debian's own
# tools.
set -eu
umask 022

here=$(cd "$(dirname "$0")" && pwd)
deploy=$(dirname "$here")
top=$(dirname "$deploy")
program=$(realpath "${1:-$top/.build/dist/locationhub}")
folder=$(realpath "${2:-$top/.build/dist}")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"

architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-Location hub maintainers} <${DEBEMAIL:-maintainers@locationhub.invalid}>"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
time=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S)
version=$("$program" version |
  sed -E "s/^locationhub ([0-9.]+)(-([a-z0-9]+))? \(commit ([a-z0-9]+).*/\1~\3+$time.\4/; s/~\+/+/")-1

# The packages of the libraries that it is linked with, and the newest of glibc's versions that it asks for.
libraries=$(ldd "$program" | awk '$3 ~ /^\// {print $3}' | while read -r library; do
  dpkg -S "$library" 2>/dev/null || dpkg -S "/usr$library" 2>/dev/null || dpkg -S "$(realpath "$library")"
done | cut -d: -f1 | sort -u)
glibc=$(objdump -T "$program" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1 | cut -d_ -f2)
depends=$(printf '%s\n' $libraries | sed "s/^libc6\$/libc6 (>= $glibc)/" | paste -sd, | sed 's/,/, /g')

documents=$tree/usr/share/doc/locationhub
install -D -m 755 "$program" "$tree/usr/bin/locationhub"
install -D -m 644 "$deploy/locationhub.conf" "$tree/etc/locationhub/locationhub.conf"
install -d "$tree/lib/systemd/system" "$tree/usr/share/man/man1" "$documents/examples" "$tree/DEBIAN"
sed 's|^ExecStart=/usr/local/bin/|ExecStart=/usr/bin/|' "$deploy/locationhub.service" \
  > "$tree/lib/systemd/system/locationhub.service"
install -m 644 "$deploy/locationhub.socket" "$tree/lib/systemd/system"
gzip -9nc "$here/locationhub.1" > "$tree/usr/share/man/man1/locationhub.1.gz"
gzip -9nc "$top/CHANGELOG.md" > "$documents/changelog.gz"
gzip -9nc > "$documents/changelog.Debian.gz" <<END
locationhub ($version) unstable; urgency=medium

  * Packed from the sources. What is new in them: changelog.gz.

 -- $maintainer  $(date -uR -d "@$SOURCE_DATE_EPOCH")
END
install -m 644 "$here/copyright" "$deploy/README.md" "$deploy/RUNBOOK.md" "$documents"
install -m 644 "$deploy/nginx.conf" "$deploy/haproxy.cfg" "$documents/examples"
cp -r "$deploy/prometheus" "$deploy/grafana" "$documents/examples"

install -m 755 "$here/postinst" "$here/prerm" "$here/postrm" "$tree/DEBIAN"
echo /etc/locationhub/locationhub.conf > "$tree/DEBIAN/conffiles"
(cd "$tree" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
sed "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@MAINTAINER@/$maintainer/; s/@DEPENDS@/$depends/
  s/@SIZE@/$(du -k --apparent-size -s --exclude=DEBIAN "$tree" | cut -f1)/" "$here/control" > "$tree/DEBIAN/control"
package=$folder/locationhub_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$tree" "$package" >/dev/null
echo "$package"
