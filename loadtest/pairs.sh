#!/usr/bin/env bash
# What a message costs one hub over what it costs another, on a machine that is not the same from minute to minute:
#
#   loadtest/pairs.sh index|channels|tls [ROUNDS] [RATE]
#
# Two hubs run at once, on core 0: one with a thousand drivers in its index, one with a million (channels: ten that are followed
# without news, and 100,000), whose user parts are compared; or one without TLS and one with it, of which all CPU is. They are
# loaded in turn for 4 s each, from core 1, by 1,000 drivers of so many fixes a second (17.95), the first of a round being the
# second of the next; the result is the median of the rounds' ratios, for one stall of the machine would decide a
# mean. A round before all others, in which a hub makes room for its sessions, does not count. As root, for the samples.
set -euo pipefail
cd "$(dirname "$0")/.."
curve=${1:?index, channels or tls}
rounds=${2:-10}
rate=${3:-17.95}
bin=.build/release
folder=$(mktemp -d)
declare -A pid url size
case $curve in
  index) size=([small]=1000 [large]=1000000) ;;
  channels) size=([small]=10 [large]=100000) ;;
  tls) size=([small]=plain [large]=tls) ;;
  *) echo "no such pair: $curve (index, channels, tls)" >&2; exit 2 ;;
esac
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$folder"' EXIT

figure=userPerDelivery
declare -A secure=([small]= [large]=)
trust=()
if [ "$curve" = tls ]; then
  figure=cpuPerFix
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=127.0.0.1 \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$folder/key.pem" -out "$folder/cert.pem" 2>/dev/null
  secure[large]="--tls-cert $folder/cert.pem --tls-key $folder/key.pem"
  trust=(--ca "$folder/cert.pem")
fi

# Until a command is true, as long as a process is there, for a minute at most.
until_true() {
  local process=$1 tries=0
  shift
  until "$@"; do
    kill -0 "$process" 2>/dev/null || { echo "it has ended before: $*" >&2; exit 1; }
    [ $((tries += 1)) -lt 600 ] || { echo "for a minute not true: $*" >&2; exit 1; }
    sleep 0.1
  done
}
says_where() { url[$hub]=$(grep -Eom 1 'https?://[0-9.:]*' "$folder/$hub"); }

load() { taskset -c 1 $bin/hub-loadtest "$@" --threads 1 >"$folder/out" 2>&1 || { cat "$folder/out" >&2; exit 1; }; }

for hub in small large; do
  taskset -c 0 $bin/locationhub serve --port 0 --dev-auth --no-journal --loops 1 --session-rate 0 --flush-interval 0 \
    --accept-rate 0 --sampling 3600 --log-level error ${secure[$hub]} >"$folder/$hub" &
  pid[$hub]=$!
  started+=($!)
  until_true "${pid[$hub]}" says_where
  if [ "$curve" = index ]; then
    load trip --url "${url[$hub]}" --drivers 10 --rate 1 --fleet "${size[$hub]}" --duration 1 --warm-up 0
  elif [ "$curve" = channels ]; then
    taskset -c 1 $bin/hub-loadtest idle --threads 1 --url "${url[$hub]}" --drivers 0 --idle 400 \
      --quiet-channels "${size[$hub]}" --duration 86400 --warm-up 0 >"$folder/idle-$hub" 2>&1 &
    started+=($!)
    until_true $! grep -q ': 400 sessions' "$folder/idle-$hub"
  fi
done

for round in $(seq 0 "$rounds"); do
  order="small large"
  [ $((round % 2)) = 1 ] || order="large small"
  for hub in $order; do
    load trip --url "${url[$hub]}" --pid "${pid[$hub]}" --drivers 1000 --rate "$rate" --duration 4 --warm-up 1 \
      --in-flight 1000 --sample --json "$folder/json" $([[ ${url[$hub]} != https* ]] || echo "${trust[@]}")
    echo "${size[$hub]} $(grep -o "\"$figure\": *[0-9.]*" "$folder/json" | grep -o '[0-9.]*$')"
  done
done | awk -v figure="$figure" -v small="${size[small]}" -v large="${size[large]}" '
  NR <= 2 { print $0, "(does not count)"; next }
  { cost[$1] = $2; print }
  NR % 2 == 0 {
    ratio = cost[large] / cost[small]
    for (place = ++n; place > 1 && sorted[place - 1] > ratio; place--) sorted[place] = sorted[place - 1]
    sorted[place] = ratio
  }
  function percent(place) { return (sorted[place < 1 ? 1 : place > n ? n : place] - 1) * 100 }
  END {
    if (n == 0) exit 1
    printf "%s, %d rounds: median %+.0f %%, the middle half %+.0f to %+.0f %%\n", figure, n,
      (percent(int((n + 1) / 2)) + percent(int(n / 2) + 1)) / 2, percent(int(n / 4) + 1), percent(n - int(n / 4))
  }'
