"""`make demo-cluster`: three hubs share one fleet behind one address; each rider is at another hub than its driver.

Once every two seconds: what each hub does, what crosses between them, and how long a position takes.
"""

import argparse
import signal
import subprocess
import sys
import time

from cluster import NAMES, ROOT, Cluster

COLUMNS = [
    ("drivers", 'sessions{role="driver"}', False), ("riders", 'sessions{role="rider"}', False),
    ("fixes/s", "fixes_received_total", True), ("positions/s", "positions_out_total", True),
    ("follows", "cluster_follows", False), ("out/s", "cluster_states_out_total", True),
    ("in/s", "cluster_relayed_total", True), ("frames/s", "cluster_frames_out_total", True),
    ("KB/s", "cluster_bytes_out_total", True), ("CPU %", "process_cpu_seconds_total", True),
]
SCALES = {"KB/s": 1 / 1000, "CPU %": 100}


def table(hubs, before, now, seconds):
    lines = ["hub    " + "".join(f"{title:>12}" for title, _, _ in COLUMNS)]
    for name in NAMES:
        cells = []
        for title, figure, is_rate in COLUMNS:
            value = now[name].get(figure, 0)
            if is_rate:
                value = (value - before[name].get(figure, 0)) / seconds
            cells.append(f"{value * SCALES.get(title, 1):12.0f}")
        lines.append(f"{name:7}" + "".join(cells))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hub", default=f"{ROOT}/.build/release/locationhub", help="the executable")
    parser.add_argument("--drivers", type=int, default=300)
    parser.add_argument("--duration", type=float, default=float("inf"), help="seconds; without: until Ctrl-C")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    cluster = Cluster(options.hub)
    fleet = None
    try:
        url = f"ws://127.0.0.1:{cluster.listen}/v1/ws"
        print(cluster.status().stdout)
        print(f"clients come to {url}\nHAProxy spreads them; all riders are at another hub than their drivers")
        print(f"stop a hub:  kill {cluster.hubs['hub-b'].process.pid}      files and logs: {cluster.folder}")
        log = f"{cluster.folder}/fleet.log"
        with open(log, "w") as file:
            fleet = subprocess.Popen(
                [options.hub, "demo", "--url", url, "--drivers", str(options.drivers)], stdin=subprocess.DEVNULL,
                stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
        start = time.monotonic()
        before, then = {hub.name: hub.metrics() for hub in cluster.hubs.values()}, start
        while time.monotonic() - start < options.duration:
            time.sleep(2)
            now, at = {hub.name: hub.metrics() for hub in cluster.hubs.values()}, time.monotonic()
            print(f"\n{table(cluster.hubs, before, now, at - then)}")
            before, then = now, at
            with open(log) as file:
                print((file.read().splitlines() or ["the fleet starts"])[-1], flush=True)
            if fleet.poll() is not None:
                sys.exit(f"the fleet has ended with {fleet.returncode}; its last line is above")
    except KeyboardInterrupt:
        print("\nending")
    finally:
        if fleet and fleet.poll() is None:
            fleet.terminate()
            fleet.wait()
        cluster.end()


main()
