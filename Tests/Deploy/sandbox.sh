#!/bin/sh
# Runs a script as on a machine of its own: sandbox.sh [folder] [script]. Its root is a copy-on-write view of this
# machine's, with processes and a network (loopback alone) that end with it: nothing of what is done there stays, but
# in `guide` in the folder, which is seen as /guide there. Needs root.
set -eu
folder=$1 script=$2
here=$(cd "$(dirname "$0")" && pwd)
exec unshare --mount --net --pid --fork --kill-child sh -eu -c '
  folder=$1 script=$2 here=$3 base=$1/sandbox
  mkdir -p "$base"
  mount -t tmpfs sandbox "$base"
  mkdir "$base/upper" "$base/work" "$base/root"
  mount -t overlay sandbox -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" "$base/root"
  root=$base/root
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mkdir -p "$root/guide" "$root/run/systemd/system"
  mount --bind "$folder/guide" "$root/guide"
  ip link set lo up
  cp "$here/systemctl.py" "$root/usr/local/bin/systemctl"
  rm -f "$root/usr/bin/systemctl" "$root/bin/systemctl" "$root/usr/sbin/policy-rc.d"
  cp "$here/systemctl.py" "$root/usr/bin/systemctl"
  printf "#!/bin/sh\nexec \"\$@\"\n" > "$root/usr/local/bin/sudo"
  chmod 755 "$root/usr/local/bin/systemctl" "$root/usr/bin/systemctl" "$root/usr/local/bin/sudo"
  echo "127.0.0.1 localhost hub.example" > "$root/etc/hosts"
  exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c "cd /guide && . $script"
' sandbox "$folder" "$script" "$here"
