#!/usr/bin/env python3
"""What it costs that a rider is at another hub than the driver: time, and CPU of both hubs and of the engine.

    loadtest/crossing.py [DRIVERS] [FIXES A SECOND OF EACH] [SECONDS] [ROUNDS] [TURN PACE in µs]

Three hubs of .build/release and a real Redis. A rider follows each driver's trip, at the driver's hub or at another one,
interleaved; what riders at the driver's hub cost is taken off. Hubs and engine have all cores but one, which makes the
load: with two cores they share one, so the most that they carry together is less than what one hub does alone.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, f"{ROOT}/Tests/Cluster")
from cluster import Cluster  # noqa: E402

RELEASE = f"{ROOT}/.build/release"


def cpu(process):
    """Seconds of a core that a process has had."""
    with open(f"/proc/{process.process.pid}/stat") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def idle():
    """Seconds that all cores together have done nothing."""
    with open("/proc/stat") as file:
        words = file.readline().split()
    return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")


class Run:
    """One load, and what it has cost."""

    def __init__(self, cluster, load, drivers, is_crossing):
        here, there = cluster.hubs["hub-a"], cluster.hubs["hub-b"]
        names = ("cluster_states_out_total", "cluster_frames_out_total", "cluster_bytes_out_total")
        hubs, engine, rest, began = cpu(here) + cpu(there), cpu(cluster.engines[0]), idle(), time.monotonic()
        before = [here.figure(name) for name in names]
        with tempfile.NamedTemporaryFile() as file:
            words = [f"{RELEASE}/hub-loadtest", "trip", "--url", f"http://127.0.0.1:{here.port}", "--json", file.name, *load]
            done = subprocess.run(
                words + (["--riders-port", str(there.port)] if is_crossing else []), capture_output=True, text=True)
            # Who follows a trip before it begins at another hub gets its first positions with the snapshot.
            lost = re.search(r"VIOLATED: lost: ([0-9,]+)$", done.stdout, re.MULTILINE)
            is_first = is_crossing and lost and int(lost[1].replace(",", "")) <= 2 * drivers
            if done.returncode and not is_first:
                sys.exit(f"the load failed:\n{done.stdout}{done.stderr}")
            with open(file.name) as text:
                figures = json.load(text)["runs"][0]["figures"]
        self.hubs, self.engine = cpu(here) + cpu(there) - hubs, cpu(cluster.engines[0]) - engine
        self.idle = (idle() - rest) / (time.monotonic() - began) / os.cpu_count()
        self.states, self.frames, self.bytes = (here.figure(name) - old for name, old in zip(names, before))
        self.figures = figures
        self.p50, self.p99 = figures["latencyP50"] / 1e3, figures["latencyP99"] / 1e3
        self.rate = figures["fixesPerSecond"]


def main():
    drivers, each, seconds, rounds, pace = (
        [int(word) for word in sys.argv[1:]] + [500, 10, 10, 5, 0][len(sys.argv) - 1:])
    warm_up = 2
    load = ["--drivers", str(drivers), "--rate", str(each), "--duration", str(seconds), "--warm-up", str(warm_up),
            "--threads", "1"]
    cores = os.cpu_count()
    cluster = Cluster(f"{RELEASE}/locationhub", has_proxy=False, options=("--turn-pace", str(pace), "--accept-rate", "0"))
    try:
        for process in [*cluster.hubs.values(), *cluster.engines]:
            subprocess.run(["taskset", "-acp", f"0-{max(0, cores - 2)}", str(process.process.pid)], check=True,
                           stdout=subprocess.DEVNULL)
        os.sched_setaffinity(0, {cores - 1})
        runs = {False: [], True: []}
        for number in range(2 * rounds):
            is_crossing = number % 4 in (1, 2)
            runs[is_crossing].append(Run(cluster, load, drivers, is_crossing))
    finally:
        cluster.end()

    def median(values):
        values = sorted(values)
        return f"{statistics.median(values):8.3f}  ({values[0]:.3f}–{values[-1]:.3f})"

    positions = drivers * each * (seconds + warm_up)
    own = {name: statistics.median(getattr(run, name) for run in runs[False]) for name in ("p50", "p99", "hubs", "engine")}
    there = runs[True]
    print(f"{statistics.median(run.rate for run in there):.0f} fixes a second, --turn-pace {pace}, {rounds} rounds; "
          f"idle {min(run.idle for run in there):.0%} at least")
    rows = [
        ("p50 at the driver's hub, ms", [run.p50 for run in runs[False]]),
        ("p99 at the driver's hub, ms", [run.p99 for run in runs[False]]),
        ("a crossing adds to p50, ms", [run.p50 - own["p50"] for run in there]),
        ("a crossing adds to p99, ms", [run.p99 - own["p99"] for run in there]),
        ("both hubs, µs of CPU more a position", [(run.hubs - own["hubs"]) / positions * 1e6 for run in there]),
        ("engine, µs of CPU a position", [(run.engine - own["engine"]) / positions * 1e6 for run in there]),
        ("positions a frame", [run.states / max(1, run.frames) for run in there]),
        ("bytes a position on the bus", [run.bytes / max(1, run.states) for run in there]),
        ("positions that crossed, of all", [run.states / positions for run in there]),
    ]
    for name, values in rows:
        print(f"{name:40} {median(values)}")


if __name__ == "__main__":
    main()
