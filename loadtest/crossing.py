#!/usr/bin/env python3
"""What it costs that a rider is at another hub than the driver: time, and CPU of both hubs and of the engine.

    loadtest/crossing.py [--rate 20000,15000,…] [--turn-pace 0] [--drivers 500] [--seconds 10] [--rounds 5]
                         [--hubs 1,2,3] [--search] [--json FILE] [--markdown FILE]

Three hubs of .build/release and a real Redis. A rider follows each driver's trip: at another hub (the crossing); at the
driver's, with half of the pairs at each of the two hubs; or at the driver's, with all of them at one. The three are
interleaved. What the halves cost is taken off: the same fixes come in and the same positions go out at the same two
hubs. Against one hub that has everything the crossing also pays for two loops with less to do in the place of one, whose
turns have more messages each; the table says both. Hubs and engine have all cores but one, which makes the load: with two
cores they share one, so the most that they carry together is less than what one hub does alone. Of the rates (fixes a
second of all drivers together) it is the first at which the cores are idle to 20 %, or the last.

Four rows have a threshold, at the rate by itself, not at that of `--spread-rate`: a median over it is named at the end,
and then this exits with 1.

`--hubs`: also what so many hubs take, with the same drivers and riders spread evenly over them. `--search`: also what a
question who is near takes at each hub, and a cell of a map that is watched elsewhere. `--json` is for `hub-loadtest
capacity --crossing`, which wants both.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, f"{ROOT}/Tests/Cluster")
from cluster import NAMES, Cluster  # noqa: E402

RELEASE = f"{ROOT}/.build/release"
WARM_UP = 2
WANTED_IDLE = 0.2
PATIENCE = 60  # seconds until a hub answers
# At 7 positions a frame or more.
THRESHOLDS = {
    "a crossing adds to p50, ms": 1, "a crossing adds to p99, ms": 10, "both hubs, µs of CPU more a position": 1.5,
    "engine, µs of CPU a position": 0.3,
}


def cpu(*processes):
    """Seconds of a core that processes have had together."""
    seconds = 0
    for process in processes:
        with open(f"/proc/{process.process.pid}/stat") as file:
            words = file.read().rsplit(")", 1)[1].split()
        seconds += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def idle():
    """Seconds that all cores together have done nothing."""
    with open("/proc/stat") as file:
        words = file.readline().split()
    return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), os.uname().machine)
    return f"{os.cpu_count()} × {model}, Linux {os.uname().release}, {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}"


def say(text):
    print(text, file=sys.stderr, flush=True)


class Failed(Exception):
    """A load that did not get what it should, or was late itself."""


class Load:
    """Drivers at one hub with a rider each at another, or the same."""

    is_any_good = False

    def __init__(self, here, there, drivers, rate, seconds):
        self.drivers, self.rate = drivers, rate
        self.file = tempfile.NamedTemporaryFile()
        words = [f"{RELEASE}/hub-loadtest", "trip", "--url", f"http://127.0.0.1:{here.port}", "--json", self.file.name,
                 "--drivers", str(drivers), "--rate", str(rate / drivers), "--duration", str(seconds),
                 "--warm-up", str(WARM_UP), "--threads", "1"]
        self.process = subprocess.Popen(
            words + (["--riders-port", str(there.port)] if here is not there else []), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def end(self):
        """The figures of what it has measured."""
        output = self.process.communicate()[0]
        # Who follows a trip before it begins waits for the ledger's answer, and gets the first positions with the snapshot:
        # of 500 trips that begin at once, those of 0.2 s.
        objections = re.findall(r"(?:VIOLATED|NOT VALID): .*$", output, re.MULTILINE)
        lost = len(objections) == 1 and re.fullmatch(r"VIOLATED: lost: ([0-9,]+)", objections[0])
        is_first = lost and int(lost[1].replace(",", "")) <= max(2 * self.drivers, self.rate / 4)
        if self.process.returncode and not is_first and not Load.is_any_good:
            raise Failed(output)
        with open(self.file.name) as text:
            return json.load(text)["runs"][0]["figures"]


class Pinned(Cluster):
    """A cluster that leaves the last core to the load."""

    def __init__(self, pace):
        super().__init__(
            f"{RELEASE}/locationhub", has_proxy=False,
            options=(*(("--turn-pace", pace) if pace else ()), "--accept-rate", "0", "--session-rate", "0"))
        last = os.cpu_count() - 1
        for process in [*self.hubs.values(), *self.engines]:
            subprocess.run(["taskset", "-acp", f"0-{max(0, last - 1)}", str(process.process.pid)], check=True,
                           stdout=subprocess.DEVNULL)
        os.sched_setaffinity(0, {last})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


# Hubs of the drivers and riders, with an even share of the load each.
ONE_HUB, HALVES, CROSSING = [("hub-a", "hub-a")], [("hub-a", "hub-a"), ("hub-b", "hub-b")], [("hub-a", "hub-b")]


class Run:
    """One load, and what it has cost while it ran evenly: who connects and subscribes at first is not counted."""

    def __init__(self, cluster, options, rate, pairs):
        here, there = cluster.hubs["hub-a"], cluster.hubs["hub-b"]
        names = ("cluster_states_out_total", "cluster_frames_out_total", "cluster_bytes_out_total")
        loads = []
        for driver, rider in pairs:
            loads.append(Load(
                cluster.hubs[driver], cluster.hubs[rider], options.drivers // len(pairs), rate / len(pairs),
                options.seconds))
            time.sleep(0.01)  # each has names of its own, by the clock
        time.sleep(WARM_UP + 1)
        hubs, engine, rest, began = cpu(here, there), cpu(cluster.engines[0]), idle(), time.monotonic()
        before = [here.figure(name) for name in names]
        time.sleep(options.seconds - 2)
        self.hubs, self.engine = cpu(here, there) - hubs, cpu(cluster.engines[0]) - engine
        seconds = time.monotonic() - began
        self.idle = (idle() - rest) / seconds / os.cpu_count()
        self.states, self.frames, self.bytes = (here.figure(name) - old for name, old in zip(names, before))
        figures = [load.end() for load in loads]
        self.p50, self.p99 = (
            statistics.mean(part[name] for part in figures) / 1e3 for name in ("latencyP50", "latencyP99"))
        self.rate = sum(part["fixesPerSecond"] for part in figures)
        self.positions = rate * seconds


class Crossing:
    """Interleaved runs at one rate: the rows of a table, and the terms of the model."""

    def __init__(self, cluster, options, rate):
        kinds = (CROSSING, HALVES, ONE_HUB)
        runs = [[], [], []]
        for number in range(3 * options.rounds):
            # Each comes as often behind each of the others.
            kind = (number + number // 3) % 3
            runs[kind].append(Run(cluster, options, rate, kinds[kind]))
        there, halves, one = runs
        own = {name: statistics.median(getattr(run, name) for run in halves) for name in ("p50", "p99", "hubs")}
        alone = statistics.median(run.hubs for run in one)
        self.rate, self.idle = statistics.median(run.rate for run in there), min(run.idle for run in there)
        self.rows = [
            ("p50 at the driver's hub, ms", [run.p50 for run in halves]),
            ("p99 at the driver's hub, ms", [run.p99 for run in halves]),
            ("a crossing adds to p50, ms", [run.p50 - own["p50"] for run in there]),
            ("a crossing adds to p99, ms", [run.p99 - own["p99"] for run in there]),
            ("both hubs, µs of CPU more a position", [(run.hubs - own["hubs"]) / run.positions * 1e6 for run in there]),
            ("… more than with all at one hub", [(run.hubs - alone) / run.positions * 1e6 for run in there]),
            ("engine, µs of CPU a position", [run.engine / run.positions * 1e6 for run in there]),
            ("positions a frame", [run.states / max(1, run.frames) for run in there]),
            ("bytes a position on the bus", [run.bytes / max(1, run.states) for run in there]),
            ("positions that crossed, of all", [run.states / run.positions for run in there]),
        ]

    def median(self, name):
        return next(statistics.median(values) for title, values in self.rows if title.startswith(name))


def measure_crossing(options, pace):
    """At the first rate that leaves the cores idle enough; one round tries a rate."""
    rates = [int(word) for word in options.rate.split(",")]
    with Pinned(pace) as cluster:
        for rate in rates:
            try:
                tried = Run(cluster, options, rate, CROSSING)
            except Failed as failure:
                say(f"{rate} a second cannot be: " + "; ".join(
                    line.strip() for line in str(failure).splitlines() if "VIOLATED" in line or "NOT VALID" in line))
                continue
            say(f"{rate} a second, --turn-pace {pace or 'as it is'}: idle {tried.idle:.0%}")
            if tried.idle >= WANTED_IDLE:
                break
        else:
            say(f"the cores are never idle to {WANTED_IDLE:.0%}")
        return Crossing(cluster, options, rate)


def measure_spread(options, count):
    """Cores of so many hubs and of the engine, with drivers and riders spread evenly over them."""
    rate, pairs = int(options.spread_rate), [(a, b) for a in NAMES[:count] for b in NAMES[:count]]
    drivers = options.drivers // len(pairs)
    with Pinned(None) as cluster:
        hubs = [cluster.hubs[name] for name in NAMES[:count]]
        cores, engine = [], []
        for _ in range(options.rounds):
            loads = []
            for here, there in pairs:
                loads.append(Load(cluster.hubs[here], cluster.hubs[there], drivers, rate / len(pairs), options.seconds))
                time.sleep(0.01)  # each has names of its own, by the clock
            time.sleep(WARM_UP + 1)
            before, at = (cpu(*hubs), cpu(cluster.engines[0])), time.monotonic()
            time.sleep(options.seconds - 2)
            seconds = time.monotonic() - at
            cores.append((cpu(*hubs) - before[0]) / seconds)
            engine.append((cpu(cluster.engines[0]) - before[1]) / seconds)
            for load in loads:
                load.end()
    say(f"{count} hubs, {rate} fixes a second: {statistics.median(cores):.3f} cores ({min(cores):.3f}–{max(cores):.3f}), "
        f"the engine {statistics.median(engine):.3f}")
    return [count, rate, 2 * drivers * len(pairs), statistics.median(cores), statistics.median(engine)]


async def measure_questions(options):
    """µs of CPU, of all three hubs together: a question who is near, and a watched cell for a second."""
    import websockets

    drivers = 1000
    with Pinned(None) as cluster:
        hubs = list(cluster.hubs.values())

        def post(number):
            # 1,000 drivers in 6 by 6 km, a third at each hub.
            place = {"latitude": 48.1 + number % 32 * 0.0017, "longitude": 11.5 + number // 32 * 0.0025, "accuracy": 5,
                     "timestamp": int(time.time() * 1000)}
            request = urllib.request.Request(
                f"http://127.0.0.1:{hubs[number % 3].port}/v1/locations?role=driver&id=d{number}",
                json.dumps({"locations": [place]}).encode())
            urllib.request.urlopen(request, timeout=10).read()

        for number in range(drivers):
            post(number)

        async def client(hub, name):
            return await websockets.connect(
                f"ws://127.0.0.1:{hub.port}/v1/ws?role=ops&id={name}", max_queue=None, ping_interval=None)

        async def during(work):
            before, at = [cpu(hub) for hub in hubs], time.monotonic()
            count = await work
            seconds = time.monotonic() - at
            return [cpu(hub) - old for hub, old in zip(hubs, before)], count, seconds

        async def ask(socket, seconds):
            end, count = time.monotonic() + seconds, 0
            while time.monotonic() < end:
                for number in range(20):
                    await socket.send(json.dumps({
                        "type": "query", "messageId": f"q{count + number}", "timestamp": int(time.time() * 1000),
                        "payload": {"kind": "nearby", "latitude": 48.12, "longitude": 11.53, "limit": 10}}))
                for _ in range(20):
                    await asyncio.wait_for(socket.recv(), PATIENCE)
                count += 20
            return count

        async def stand(seconds):
            await asyncio.sleep(seconds)
            return 1

        rest, _, seconds = await during(stand(options.seconds))
        idle_share = [value / seconds for value in rest]
        socket = await client(hubs[0], "asker")
        await asyncio.wait_for(socket.recv(), PATIENCE)
        used, count, seconds = await during(ask(socket, options.seconds))
        used = [value - share * seconds for value, share in zip(used, idle_share)]
        answer = used[0] / count * 1e6
        elsewhere = (used[1] + used[2]) / 2 / count * 1e6
        say(f"{count / seconds:.0f} questions a second: {answer:.1f} µs where it is asked, {elsewhere:.1f} µs at each other hub")
        # Cells of a map, whose drivers move: sent to one hub more.
        costs = []
        for is_watched in (False, True):
            watcher = await client(hubs[0], "map")
            if is_watched:
                await watcher.send(json.dumps({
                    "type": "subscribe", "messageId": "m1", "timestamp": int(time.time() * 1000),
                    "payload": {"channel": "box:11.45,48.05,11.65,48.2"}}))

            async def drain():
                async for _ in watcher:
                    pass

            reader = asyncio.create_task(drain())
            end, before, at, moved = time.monotonic() + options.seconds, [cpu(hub) for hub in hubs], time.monotonic(), 0
            while time.monotonic() < end:
                await asyncio.to_thread(post, moved % drivers)
                moved += 1
            costs.append((sum(cpu(hub) - old for hub, old in zip(hubs[1:], before[1:])), moved, time.monotonic() - at,
                          hubs[1].figure("cluster_cells_watched"), hubs[1].figure("cluster_area_drivers_out_total")))
            await watcher.close()
            await reader
        sent = 2 * max(1, costs[1][4] - costs[0][4])
        more = costs[1][0] / costs[1][1] - costs[0][0] / costs[0][1]
        say(f"{costs[1][3]:.0f} cells watched at each; {more * 1e6:.1f} µs more for each driver that moved there, "
            f"{more * costs[1][1] / sent * 1e6:.1f} µs for each that was sent")
        return {"search": elsewhere, "answer": answer, "cell_driver": more * costs[1][1] / sent * 1e6}


def terms_of(many, few):
    """The terms of the model: µs of a frame and of a position, of both hubs and of the engine, of two rates."""
    shares = [1 / found.median("positions a frame") for found in (many, few)]
    if shares[0] == shares[1]:
        raise Failed("frames have as many positions at both rates: choose others")
    costs = [found.median("both hubs") for found in (many, few)]
    frame = max(0, (costs[1] - costs[0]) / (shares[1] - shares[0]))
    engine = statistics.mean(found.median("engine,") / share for found, share in zip((many, few), shares))
    return {"frame": frame, "position": max(0, costs[0] - frame * shares[0]), "engineFrame": engine,
            "framesPerSecond": max(found.rate * share for found, share in zip((many, few), shares)),
            "bytes": many.median("bytes a position")}


def heading(found, pace):
    return f"{found.rate:,.0f} fixes a second, --turn-pace {pace or 'as it is'}"


def table(found, pace, thresholds):
    lines = [f"{heading(found, pace)}; idle {found.idle:.0%} at least", "",
             "| | median | | at most |", "| --- | --- | --- | --- |"]
    for name, values in found.rows:
        lines.append(f"| {name} | {statistics.median(values):.3f} | {min(values):.3f}–{max(values):.3f} "
                     f"| {thresholds.get(name, '')} |")
    return "\n".join(lines)


def over(found, pace):
    """The rows whose median is over its threshold."""
    medians = {name: statistics.median(values) for name, values in found.rows}
    return [f"{heading(found, pace)}: {name}: {medians[name]:.2f} of {limit}"
            for name, limit in THRESHOLDS.items() if medians[name] > limit]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", default="20000,15000,10000,7500,5000", help="fixes a second, the first that is possible")
    parser.add_argument("--turn-pace", default="0,", help="µs, one or several; nothing for the default")
    parser.add_argument("--drivers", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hubs", default="", help="1,2,3: what so many hubs take")
    parser.add_argument("--spread-rate", default="3000", help="fixes a second for --hubs")
    parser.add_argument("--search", action="store_true", help="what questions and maps take")
    parser.add_argument("--json", help="a file for hub-loadtest capacity --crossing")
    parser.add_argument("--markdown", help="a file for the tables")
    parser.add_argument("--anyway", action="store_true", help="take loads that were late, too: for trying it out")
    options = parser.parse_args()
    if options.seconds < 3:
        parser.error("--seconds: 3 or more, of which 2 are not measured")
    Load.is_any_good = options.anyway
    all_cores = os.sched_getaffinity(0)
    tables, terms, missed = [], {}, []
    for pace in options.turn_pace.split(","):
        found = measure_crossing(options, pace)
        os.sched_setaffinity(0, all_cores)
        tables.append(table(found, pace, THRESHOLDS))
        missed += over(found, pace)
        print(tables[-1] + "\n", flush=True)
    # What a frame costs, and each position in it, from two rates of the hub as it is by itself: the last pace is the default.
    with Pinned(pace) as cluster:
        few = Crossing(cluster, options, int(options.spread_rate))
    os.sched_setaffinity(0, all_cores)
    tables.append(table(few, pace, {}))
    print(tables[-1] + "\n", flush=True)
    terms = terms_of(found, few)
    terms["checks"] = []
    for count in [int(word) for word in options.hubs.split(",") if word]:
        terms["checks"].append(measure_spread(options, count))
        os.sched_setaffinity(0, all_cores)
    if options.search:
        questions = asyncio.run(measure_questions(options))
        terms["search"] = max(0, questions["search"])
        moved = questions["cell_driver"]
        tables.append(f"A question who is near, of 1,000 drivers over three hubs: {questions['answer']:.0f} µs where it is "
                      f"asked, {questions['search']:.0f} µs at each other hub. A driver that has moved in a cell which "
                      f"another hub watches: {f'{moved:.1f} µs' if moved > 0 else 'less than what varies here'}.")
        print(tables[-1])
    if options.json:
        with open(options.json, "w") as file:
            json.dump(terms, file, indent=2)
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write("# What a crossing costs\n\nWritten by `loadtest/crossing.py`, three hubs and a Redis on this machine.\n\n"
                       f"    {machine()}\n\n" + "\n\n".join(tables) + "\n")
    if missed:
        sys.exit("over the threshold:\n  " + "\n  ".join(missed))


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"the load failed:\n{failure}")
