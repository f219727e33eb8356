"""Several hubs as processes over a real engine: what crosses, and what does not get lost when things break.

Tests/Cluster/run.sh runs it; LOCATIONHUB is the executable. CUTS says how many connections to the engine are cut,
ROVERS and ROUNDS how many drivers come back how often at random hubs.
"""

import asyncio
import concurrent.futures
import hmac
import json
import logging
import math
import os
import random
import re
import socket
import statistics
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import websockets

from cluster import NAMES, Cluster, wait_until, within

logging.getLogger("asyncio").setLevel(logging.ERROR)  # steps that take long on a busy machine are no news
HUB = os.environ.get("LOCATIONHUB", "")
CUTS = int(os.environ.get("CUTS", "250"))
SEED = int(os.environ.get("SEED", "1"))
ROVERS, ROUNDS = int(os.environ.get("ROVERS", "20")), int(os.environ.get("ROUNDS", "10"))


class Map:
    """The drivers that a part of the map shows, by the rules of protocol/areas.md."""

    def __init__(self):
        self.drivers = {}  # by id: (cell, update of the driver)
        self.counts = {}   # by cell: how many drivers

    def take(self, kind, payload):
        if kind == "counts_update":
            cells = {cell["cell"]: cell for cell in payload["cells"]}
            if payload["full"]:
                block = payload["channel"].split(":")[1].split("/")[0]
                self.counts = {name: n for name, n in self.counts.items() if not name.startswith(block)}
            for name, cell in cells.items():
                self.counts[name] = sum(value for value in cell.values() if isinstance(value, int))
            return
        cell = payload["cell"]
        gone = list(payload["left"])
        if payload["full"]:
            named = {driver["driverId"] for driver in payload["drivers"]}
            gone += [name for name, (shown, _) in self.drivers.items() if shown == cell and name not in named]
        for driver in payload["drivers"]:
            self.drivers[driver["driverId"]] = (cell, driver)
        for name in gone:
            if name in self.drivers and self.drivers[name][0] == cell:
                del self.drivers[name]


class Client:
    """One session; reads all the time and keeps what came."""

    def __init__(self, hub, role, name):
        self.hub, self.role, self.name = hub, role, name
        self.number, self.close_code = 0, None
        self.positions = {}  # by channel: (received, timestamp of the fix)
        self.points = {}  # by channel: [epoch, newest number]
        self.faults, self.errors, self.restarts, self.events = [], [], 0, 0
        self.map = Map()
        self.figures, self.fleet = [], {}  # seconds; by driver: how many positions
        self.raw = {}  # by channel: how many fixes as they were measured
        self.trips = []  # moves of all trips
        self.offers = []  # `made`, or why it was withdrawn
        self.acks = 0

    async def open(self):
        self.socket = await websockets.connect(
            f"ws://127.0.0.1:{self.hub.port}/v1/ws?role={self.role}&id={self.name}", max_queue=None,
            ping_interval=None, open_timeout=60)
        self.reader = asyncio.create_task(self.read())
        return self

    async def send(self, kind, **payload):
        self.number += 1
        now = int(time.time() * 1000)
        await self.socket.send(
            json.dumps({"type": kind, "payload": payload, "timestamp": now, "messageId": f"m{self.number}"}))

    async def read(self):
        try:
            async for text in self.socket:
                self.take(json.loads(text))
        except websockets.ConnectionClosed:
            pass
        self.close_code = self.socket.close_code

    def take(self, message):
        payload = message["payload"]
        channel = payload.get("channel")
        match message["type"]:
            case "subscribed":
                self.restarts += payload["replyTo"] == "0"
                self.points[channel] = [payload["epoch"], payload["sequence"]]
            case "driver_location":
                self.positions.setdefault(channel, []).append((time.time(), payload["timestamp"]))
                if channel == "fleet":
                    self.fleet[payload["driverId"]] = self.fleet.get(payload["driverId"], 0) + 1
                if payload["after"] > self.points[channel][1]:
                    self.faults.append(f"{channel}: a position after event {payload['after']}, before that event")
            case "ack":
                self.acks += 1
            case "notification" | "trip_update" | "offer" | "offer_withdrawn":
                self.events += 1
                if message["type"].startswith("offer"):
                    self.offers.append((payload["tripId"], payload.get("reason", "made")))
                point = self.points[channel]
                if payload["sequence"] != point[1] + 1:
                    self.faults.append(f"{channel}: event {payload['sequence']} behind {point[1]}")
                point[1] = payload["sequence"]
                if channel == "trips":
                    self.trips.append((payload["sequence"], payload["tripId"], payload["status"]))
            case "stats":
                self.figures.append(payload)
            case "raw_fix":
                self.raw[channel] = self.raw.get(channel, 0) + 1
            case "area_update" | "counts_update":
                self.map.take(message["type"], payload)
            case "error":
                self.errors.append(payload)

    async def subscribe(self, channel, **how):
        await self.send("subscribe", channel=channel, **how)
        await eventually(lambda: channel in self.points, 5, f"{self.name} is subscribed to {channel}")

    async def fix(self, step, trip=None):
        payload = {"latitude": 48.1 + step * 2e-5, "longitude": 11.5, "accuracy": 5, "speed": 10, "heading": 0}
        await self.send(
            "location_update", **payload, timestamp=int(time.time() * 1000), **({"tripId": trip} if trip else {}))

    async def close(self):
        await self.socket.close()
        await self.reader


async def eventually(condition, seconds, what):
    start, seconds = time.monotonic(), within(seconds)
    while not condition():
        assert time.monotonic() - start < seconds, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.01)
    return time.monotonic() - start


def notify(hub, channel, number):
    """An event for all who follow a channel; at the hub that has it."""
    body = {"channel": channel, "kind": "message", "title": "n", "body": str(number)}
    request = urllib.request.Request(
        f"http://127.0.0.1:{hub.port}/v1/notifications?role=ops&id=dispatch", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as reply:
        return json.load(reply)["sequence"]


def move(hub, trip, status, key):
    """A move of a trip over HTTP; the status of the answer."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{hub.port}/v1/trips/{trip}/status?role=ops&id=dispatch",
        json.dumps({"status": status}).encode(), {"Idempotency-Key": key})
    with urllib.request.urlopen(request, timeout=10) as reply:
        return reply.status


class World:
    """A driver with a trip at each hub, and somebody at each hub who follows each trip."""

    def __init__(self, cluster):
        self.cluster, self.hubs = cluster, cluster.hubs
        self.drivers, self.watchers = {}, {}
        self.step = 0
        self.stalls = []  # from when to when this client itself stalled
        self.beating = asyncio.create_task(self.beat())

    async def beat(self):
        last = time.time()
        while True:
            await asyncio.sleep(0.05)
            now = time.time()
            if now > last + 0.15:
                self.stalls.append((last, now))
            last = now

    async def open(self):
        for name, hub in self.hubs.items():
            driver = await Client(hub, "driver", f"driver-{name}").open()
            await driver.fix(0, f"trip-{name}")
            self.drivers[name] = driver
            self.watchers[name] = await Client(hub, "ops", f"ops-{name}").open()
        await eventually(
            lambda: all(hub.figure("cluster_unclaimed") == 0 for hub in self.hubs.values()), 5, "trips are claimed")
        for watcher in self.watchers.values():
            for name in NAMES:
                await watcher.subscribe(f"trip:trip-{name}")
        return self

    async def drive(self, seconds, each=None, only=None):
        """Five fixes a second of each driver whose hub is there; `each` is called with each step. `only`: one hub's.
        All of them, however long that takes."""
        end, last = time.monotonic() + seconds, self.step + 4 * seconds
        while time.monotonic() < end or self.step < last:
            self.step += 1
            for name, driver in self.drivers.items():
                if driver.close_code is None and only in (None, name):
                    await driver.fix(self.step, f"trip-{name}")
            if each:
                await each(self.step)
            await asyncio.sleep(0.2)

    def crossing(self, since=0.0):
        """Each pair of hubs with the times at which positions came, and how long they took (s)."""
        found = {}
        for at, watcher in self.watchers.items():
            for owner in NAMES:
                times = [pair for pair in watcher.positions.get(f"trip:trip-{owner}", []) if pair[0] >= since]
                found[owner, at] = times
        return found

    def longest_gap(self, times):
        """The longest time between two positions of `crossing`, without that in which this client stalled."""
        def wait(start, end):
            return end - start - sum(max(0, min(end, last) - max(start, first)) for first, last in self.stalls)

        return max((wait(a[0], b[0]) for a, b in zip(times, times[1:])), default=math.inf)

    def faults(self):
        return [fault for watcher in self.watchers.values() for fault in watcher.faults]

    def point(self, owner, at):
        return self.watchers[at].points[f"trip:trip-{owner}"]

    def converged(self, newest=None):
        """Whether all who follow a trip are at the same event, and this is the newest one where that is given."""
        is_newest = newest is None or [self.point(name, name)[1] for name in NAMES] == newest
        return is_newest and all(self.point(name, at) == self.point(name, name) for name in NAMES for at in NAMES)

    async def close(self):
        self.beating.cancel()
        for client in [*self.drivers.values(), *self.watchers.values()]:
            await client.close()


class Crossing(unittest.IsolatedAsyncioTestCase):
    """One engine."""

    engines = 1

    async def asyncSetUp(self):
        self.cluster = Cluster(HUB, engines=self.engines, has_proxy=False, options=("--max-sessions-per-driver", "64"))
        self.addCleanup(self.cluster.end)
        self.world = await World(self.cluster).open()

    async def asyncTearDown(self):
        await self.world.close()

    async def assert_flowing(self, seconds=2):
        """Positions of each driver come to each hub."""
        since = time.time() + 0.3
        await self.world.drive(seconds + 0.5)
        for (owner, at), times in self.world.crossing(since).items():
            self.assertGreater(len(times), seconds * 3, f"{owner} → {at}")

    async def test_positions_and_events_come_to_all_hubs(self):
        await self.assert_flowing(3)
        for name in NAMES:
            await self.world.drivers[name].send(
                "trip_status", tripId=f"trip-{name}", status="driver_en_route", timestamp=int(time.time() * 1000))
        await eventually(
            lambda: self.world.converged() and self.world.point("hub-a", "hub-b")[1] > 0, 3, "all see the moves")
        self.assertEqual(self.world.faults(), [])
        waits = {True: [], False: []}
        for (owner, at), times in self.world.crossing().items():
            waits[owner == at] += [received - sent / 1000 for received, sent in times]
        print(f"\n  from fix to follower, median: {statistics.median(waits[True]) * 1000:.1f} ms at its own hub, "
              f"{statistics.median(waits[False]) * 1000:.1f} ms at others")
        shown = self.cluster.status("--trip", "trip-hub-b", "--driver", "driver-hub-c").stdout
        for text in [*NAMES, "trip trip-hub-b: at hub-b", "driver driver-hub-c: at hub-c"]:
            self.assertIn(text, shown)
        # A back end moves a trip over HTTP at whichever hub it reaches.
        seen, numbers = self.world.point("hub-b", "hub-b")[1], []
        for _ in range(2):
            status = await asyncio.to_thread(move, self.cluster.hubs["hub-a"], "trip-hub-b", "arrived_pickup", "once")
            self.assertEqual(status, 200)
            numbers.append(await asyncio.to_thread(notify, self.cluster.hubs["hub-b"], "trip:trip-hub-b", 0))
        self.assertGreater(numbers[0], seen + 1, "the move is an event")
        self.assertEqual(numbers[1], numbers[0] + 1, "the same move again is none")
        await eventually(lambda: self.world.point("hub-b", "hub-c")[1] == numbers[1], 3, "hub-c has seen all")
        # Who leaves costs nothing any more: no position of a trip that nobody follows elsewhere crosses.
        for watcher in self.world.watchers.values():
            await watcher.send("unsubscribe", channel="trip:trip-hub-a")
        hub = self.cluster.hubs["hub-a"]
        await eventually(lambda: hub.figure("cluster_followed") == 0, 3, "nobody follows hub-a elsewhere")
        # What is still sent says that the hub is there, and is no more while the driver drives than while it stands.
        loads = {}
        for name, work in [("stands", asyncio.sleep(2)), ("drives", self.world.drive(2, only="hub-a"))]:
            before, start = hub.metrics(), time.monotonic()
            await work
            after, passed = hub.metrics(), time.monotonic() - start
            frames, size, states = (
                after[f"cluster_{figure}_total"] - before[f"cluster_{figure}_total"]
                for figure in ("frames_out", "bytes_out", "states_out"))
            self.assertEqual(states, 0)
            loads[name] = (2 * frames / passed, size / frames)
        # A record of control may be among them.
        self.assertLess(loads["drives"][1], loads["stands"][1] * 1.1, "bytes of a frame")
        self.assertLessEqual(loads["drives"][0], loads["stands"][0] + 6, "frames: four a second and hub")

    async def test_a_driver_goes_on_at_another_hub(self):
        world, hubs = self.world, self.cluster.hubs
        await world.drive(1)
        followed = hubs["hub-c"].figure("cluster_followed")
        left = world.drivers["hub-b"]
        world.drivers["hub-b"] = await Client(hubs["hub-c"], "driver", "driver-hub-b").open()
        await eventually(lambda: left.close_code == 4409, 3, "its session at the trip's hub ends")
        await world.drive(1)
        since = time.time()
        await world.drive(3)
        ways = []
        for at in NAMES:
            times = world.crossing(since)["hub-b", at]
            self.assertGreater(len(times), 8, f"positions of the trip at {at}")
            ways += [received - sent / 1000 for received, sent in times]
        print(f"\n  from a fix at another hub than the trip's to its followers: "
              f"{statistics.median(ways) * 1000:.1f} ms, {max(ways) * 1000:.0f} ms at most")
        seen = world.point("hub-b", "hub-a")[1]
        await world.drivers["hub-b"].send(
            "trip_status", tripId="trip-hub-b", status="driver_en_route", timestamp=int(time.time() * 1000))
        await eventually(
            lambda: world.converged() and world.point("hub-b", "hub-a")[1] > seen, 3, "all see the driver's move")
        # Back at the trip's hub nothing of the driver crosses for the trip's sake any more.
        world.drivers["hub-b"] = await Client(hubs["hub-b"], "driver", "driver-hub-b").open()
        await world.drive(2)
        await eventually(
            lambda: hubs["hub-c"].figure("cluster_followed") == followed, 3, "the driver is not followed there")
        await self.assert_flowing()
        self.assertEqual(world.faults(), [])
        self.assertEqual(hubs["hub-b"].figure("cluster_owner_conflicts_total"), 0)

    async def test_a_map_shows_the_drivers_of_all_hubs(self):
        hubs, drivers = self.cluster.hubs, {f"driver-{name}" for name in NAMES}
        maps = {name: await Client(hub, "ops", f"map-{name}").open() for name, hub in hubs.items()}
        riders = {name: await Client(hub, "rider", f"rider-{name}").open() for name, hub in hubs.items()}
        counters = await Client(hubs["hub-a"], "ops", "counts").open()
        for client in maps.values():
            await client.subscribe("box:11.4,48.01,11.6,48.2")
        for client in riders.values():
            await client.subscribe("nearby:48.1,11.5,2000")
        await counters.subscribe("counts:11.4,48.01,11.6,48.2")
        # Those of the world are on trips, which riders do not see on maps; this one is free.
        free = await Client(hubs["hub-b"], "driver", "free").open()

        async def each(step):
            await free.fix(step)

        await self.world.drive(4, each)
        await eventually(
            lambda: all(set(client.map.drivers) == drivers | {"free"} for client in maps.values()), 3,
            "all are on maps")
        late = []
        for client in maps.values():
            self.assertEqual(set(client.map.drivers), drivers | {"free"})
            late += [time.time() - driver["timestamp"] / 1000 for _, driver in client.map.drivers.values()]
        self.assertLess(max(late), within(3))
        print(f"\n  places on maps of all hubs are {statistics.median(late):.1f} s old, {max(late):.1f} s at most")
        await eventually(
            lambda: all(len(client.map.drivers) == 1 for client in riders.values()), 3, "riders see one")
        for client in riders.values():
            self.assertNotIn("free", client.map.drivers)
        await eventually(lambda: sum(counters.map.counts.values()) == 4, 3, "all are counted")
        self.assert_listed()
        # To another hub: it is on each map once, and continues.
        moved = await Client(hubs["hub-c"], "driver", "free").open()

        async def elsewhere(step):
            await moved.fix(step)
            for client in [*maps.values(), *riders.values()]:
                self.assertGreater(len(client.map.drivers), 0)
            for client in maps.values():
                self.assertIn("free", client.map.drivers)

        await self.world.drive(4, elsewhere)
        self.assertTrue(all(len(client.map.drivers) == 1 for client in riders.values()))
        await eventually(lambda: free.close_code == 4409, 3, "its session elsewhere has ended")
        # A hub dies: its drivers are gone from the others' maps, and nobody else is.
        dead = hubs["hub-c"]
        dead.kill()
        left = drivers - {"driver-hub-c"}
        waited = await eventually(
            lambda: all(set(maps[name].map.drivers) == left for name in NAMES[:2]), 5, "its drivers are gone")
        print(f"  a hub killed: its drivers were gone from others' maps after {waited:.1f} s")
        for client in [*maps.values(), *riders.values(), counters, moved, free]:
            await client.close()
        # Nobody watches: nothing is sent.
        for name in NAMES[:2]:
            await eventually(lambda: hubs[name].figure("cluster_cells_watched") == 0, 5, f"{name} is not watched")
        before = [hubs[name].figure("cluster_area_drivers_out_total") for name in NAMES[:2]]
        await self.world.drive(1.5)
        self.assertEqual([hubs[name].figure("cluster_area_drivers_out_total") for name in NAMES[:2]], before)

    async def test_drivers_and_trips_are_found_at_any_hub(self):
        await self.world.drive(1)
        hubs = self.cluster.hubs

        def ask(name, path):
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{hubs[name].port}/v1/{path}role=ops&id=desk", timeout=10) as reply:
                return json.load(reply)

        def nearby(name):
            return ask(name, "drivers/nearby?latitude=48.1&longitude=11.5&radius=5000&")["drivers"]

        for name in NAMES:
            found = await asyncio.to_thread(nearby, name)
            self.assertEqual({driver["driverId"] for driver in found}, {f"driver-{other}" for other in NAMES})
            self.assertEqual([driver["distance"] for driver in found], sorted(d["distance"] for d in found))
            driver = await asyncio.to_thread(ask, name, "drivers/driver-hub-a?")
            self.assertTrue(driver["online"])
            trip = await asyncio.to_thread(ask, name, "trips/trip-hub-b?")
            self.assertEqual(trip["driverId"], "driver-hub-b")
        took = []
        for _ in range(50):
            start = time.monotonic()
            await asyncio.to_thread(nearby, "hub-b")
            took.append(time.monotonic() - start)
        print(f"\n  nearby over three hubs: median {statistics.median(took) * 1000:.1f} ms")
        # A stalled hub is left out, and nothing waits for it longer than a moment.
        hubs["hub-c"].stop()
        start = time.monotonic()
        found = await asyncio.to_thread(nearby, "hub-a")
        self.assertLess(time.monotonic() - start, within(2))
        self.assertEqual({driver["driverId"] for driver in found}, {"driver-hub-a", "driver-hub-b"})
        hubs["hub-c"].resume()
        await asyncio.to_thread(
            wait_until, lambda: len(nearby("hub-a")) == 3, 5, "the hub that goes on is asked again")

    async def test_lists_have_what_is_at_all_hubs_and_ops_see_what_a_driver_elsewhere_measured(self):
        await self.world.drive(1)

        def pages(kind, limit):
            """All pages of a list, each asked at another hub."""
            found, cursor, asked = [], "", 0
            while cursor is not None:
                hub = self.cluster.hubs[NAMES[asked % len(NAMES)]]
                asked += 1
                self.assertLess(asked, 10)
                url = f"http://127.0.0.1:{hub.port}/v1/{kind}?role=ops&id=desk&limit={limit}{cursor}"
                with urllib.request.urlopen(url, timeout=10) as reply:
                    page = json.load(reply)
                found += page[kind]
                cursor = f"&cursor={page['next']}" if "next" in page else None
            return found

        for limit in [1, 2, 1000]:
            drivers = await asyncio.to_thread(pages, "drivers", limit)
            self.assertEqual(
                sorted((driver["driverId"], driver["tripId"], driver["online"]) for driver in drivers),
                [(f"driver-{name}", f"trip-{name}", True) for name in NAMES])
            trips = await asyncio.to_thread(pages, "trips", limit)
            self.assertEqual(sorted(trip["tripId"] for trip in trips), [f"trip-{name}" for name in NAMES])
            self.assertEqual([trip["created"] for trip in trips], sorted((t["created"] for t in trips), reverse=True))
        ops = self.world.watchers["hub-b"]
        await ops.subscribe("raw:driver-hub-a")
        before = ops.raw.get("raw:driver-hub-a", 0)
        await self.world.drive(2)
        await eventually(lambda: ops.raw.get("raw:driver-hub-a", 0) > before + 5, 1, "what it measured")

    async def test_figures_are_of_all_hubs_and_so_is_the_fleet_once_a_second(self):
        ops = self.world.watchers["hub-b"]
        await ops.subscribe("fleet")
        await ops.subscribe("stats")
        start = time.monotonic()
        await self.world.drive(6)
        passed, most = time.monotonic() - start, max(ops.figures, key=lambda second: second["fixes"])
        self.assertEqual(most["hubs"], len(NAMES))
        self.assertEqual(most["sessions"]["driver"], len(NAMES))
        self.assertGreaterEqual(most["fixes"], 8)
        self.assertGreater(most["p50"], 0)
        self.assertEqual(set(ops.fleet), {f"driver-{name}" for name in NAMES})
        self.assertGreater(ops.fleet["driver-hub-b"], 15)
        for name in ["hub-a", "hub-c"]:
            self.assertIn(ops.fleet[f"driver-{name}"], range(3, int(passed) + 2))
        self.assertEqual(ops.faults, [])

    async def test_moves_of_all_trips_come_to_each_hub_under_the_same_numbers(self):
        watchers = list(self.world.watchers.values())
        for watcher in watchers:
            await watcher.subscribe("trips")
        await self.world.drive(1)
        self.assertEqual(len({tuple(watcher.points["trips"]) for watcher in watchers}), 1)
        for status in ["driver_en_route", "arrived_pickup", "trip_started"]:
            for name, hub in self.cluster.hubs.items():
                await asyncio.to_thread(move, hub, f"trip-{name}", status, f"all-{name}-{status}")
        await eventually(lambda: all(len(watcher.trips) == 9 for watcher in watchers), 3, "all moves are shown")
        self.assertEqual(len({tuple(watcher.trips) for watcher in watchers}), 1)
        self.assertEqual(len({trip[1:] for trip in watchers[0].trips}), 9)
        self.assertEqual(self.world.faults(), [])

    def assert_listed(self):
        """`locationhub cluster status` lists the hubs, while each has a map that shows what the others have."""
        said = subprocess.run([HUB, "--version"], capture_output=True, text=True, timeout=20).stdout
        version = said.strip().removeprefix("locationhub ")
        head, *rows = [re.split(r" {2,}", line.strip()) for line in self.cluster.status().stdout.splitlines()]
        self.assertEqual(head, ["hub", "address", "incarnation", "lag ms", "cells watched", "asked", "version"])
        self.assertEqual([row[0] for row in rows], list(NAMES))
        self.assertEqual(len({int(row[2]) for row in rows}), 3, "each hub's incarnation is its own")
        for name, address, _, lag, watched, asked, its_version in rows:
            self.assertEqual((address, its_version), (f"127.0.0.1:{self.cluster.hubs[name].port}", version))
            self.assertLess(int(lag), 1000 * within(2))
            self.assertGreater(min(int(watched), int(asked)), 0, name)

    async def test_events_survive_cuts_of_any_link(self):
        chance, cuts = random.Random(SEED), 0

        async def cut(step):
            nonlocal cuts
            if step % 5 == 0:
                for name, hub in self.cluster.hubs.items():
                    await asyncio.to_thread(notify, hub, f"trip:trip-{name}", step)
            for _ in range(6):
                if cuts < CUTS:
                    cuts += await asyncio.to_thread(self.cut_one, chance)

        while cuts < CUTS:
            await self.world.drive(0.2, cut)
        last = [(await asyncio.to_thread(notify, hub, f"trip:trip-{name}", 0)) for name, hub in
                self.cluster.hubs.items()]
        took = await eventually(lambda: self.world.converged(last), 3, "all are at the newest event")
        self.assertEqual(self.world.faults(), [])
        missed = sum(hub.figure("cluster_frames_missed_total") for hub in self.cluster.hubs.values())
        self.assertGreater(missed, 0, "the cuts lose frames")
        gaps = [(hub.name, peer) for hub in self.cluster.hubs.values() for peer in NAMES
                if self.logged(hub, "cluster_gap", peer)]
        self.assertGreater(len(gaps), 0, "holes are logged")
        events = sum(watcher.events for watcher in self.world.watchers.values())
        print(f"\n  {cuts} cuts (seed {SEED}), {missed:.0f} frames lost; {events} events shown, none missing, double "
              f"or out of order; converged in {took:.2f} s")
        await self.assert_flowing()

    async def all_reach_the_engine(self, seconds=3):
        await eventually(
            lambda: all(hub.get("/readyz?engine")[0] == 200 for hub in self.cluster.hubs.values()), seconds,
            "all hubs reach the engine")

    def cut_one(self, chance):
        """Ends one connection of a hub to the engine; 0 where none is there."""
        port = self.cluster.engine_ports[0]
        reply = Cluster.ask_engine(port, "CLIENT", "LIST").decode(errors="replace")
        found = [line for line in reply.split("\n") if "id=" in line and "cmd=client" not in line]
        if not found:
            return 0
        line = chance.choice(found)
        number = line[line.index("id=") + 3:].split()[0]
        return int(Cluster.ask_engine(port, "CLIENT", "KILL", "ID", number).startswith(b":1"))

    async def test_an_engine_that_hangs_and_one_that_comes_back_empty(self):
        engine, hubs = self.cluster.engines[0], self.cluster.hubs
        await self.world.drive(1)
        engine.stop()
        since = time.time()
        await self.world.drive(20)
        for name in NAMES:
            own = self.world.crossing(since)[name, name]
            self.assertGreater(len(own), 60, f"{name} serves its own")
            self.assertLess(self.world.longest_gap(own), within(1.5), f"{name} serves its own all the time")
            self.assertEqual(hubs[name].get("/readyz")[0], 200)
            self.assertEqual(hubs[name].get("/readyz?engine")[0], 503)
        numbers = [await asyncio.to_thread(notify, hub, f"trip:trip-{name}", 1) for name, hub in hubs.items()]
        engine.resume()
        took = await eventually(
            lambda: self.world.converged(numbers), 3, "all are at the newest event, the engine is back")
        await self.all_reach_the_engine()
        print(f"\n  engine stopped for 20 s: converged {took:.2f} s after it went on")
        await self.assert_flowing()
        known = self.generations()
        engine.kill()
        await self.world.drive(2)
        folder = f"{self.cluster.folder}/engines/{self.cluster.engine_ports[0]}/appendonlydir"
        for name in os.listdir(folder):
            os.remove(f"{folder}/{name}")
        numbers = [await asyncio.to_thread(notify, hub, f"trip:trip-{name}", 2) for name, hub in hubs.items()]
        engine.start()
        port = self.cluster.engine_ports[0]
        await eventually(lambda: Cluster.ask_engine(port, "PING") == b"+PONG\r\n", 5, "the engine answers")
        start = time.monotonic()

        def rest():
            return within(3) - (time.monotonic() - start)

        took = await eventually(
            lambda: self.world.converged(numbers), rest(), "all are at the newest event, the engine is empty")
        await self.all_reach_the_engine(rest())
        await asyncio.to_thread(
            wait_until, lambda: "at hub-b" in self.cluster.status("--trip", "trip-hub-b").stdout
            and all(name in self.cluster.status().stdout for name in NAMES), rest(),
            "members and owners are written back")
        print(f"  engine killed, back and empty: converged in {took:.2f} s, its ledger in {within(3) - rest():.2f} s")
        for key, number in self.generations().items():
            self.assertGreaterEqual(number, known[key], f"{key} goes on above what was known")
        await self.assert_flowing()
        self.assertEqual(self.world.faults(), [])

    def generations(self):
        """The ledger's counters: the highest incarnation, and the generations of who has the drivers."""
        port = self.cluster.engine_ports[0]

        def number(*words):
            return int(Cluster.ask_engine(port, *words).split(b"\r\n")[1])

        return {"incarnation": number("GET", "lh:incarnation")} | {
            name: number("HGET", f"lh:o:d:driver-{name}", "generation") for name in NAMES}

    async def test_frames_of_strangers_and_old_frames_are_refused(self):
        port, target = self.cluster.engine_ports[0], self.cluster.hubs["hub-a"]
        frames = await asyncio.to_thread(self.record, port, "lh:hub-a:c", 4)
        refused = target.total("cluster_frames_refused_total")
        # One of a member with another version, which has the key.
        with open(f"{self.cluster.folder}/cluster.key") as file:
            key = bytes.fromhex(file.read().strip())
        later = bytes([frames[0][0] + 1]) + frames[0][1:-16]
        later += hmac.new(key, later, "sha256").digest()[:16]
        wrong = [b"\x01", os.urandom(200), frames[0][:-1] + bytes([frames[0][-1] ^ 1]), frames[0] + b"\x00", later]
        for frame in wrong + frames:
            Cluster.ask_engine(port, "PUBLISH", "lh:hub-a:c", frame)
        Cluster.ask_engine(port, "PUBLISH", "lh:hub-a:s", frames[0])
        count = len(wrong) + len(frames) + 1
        await eventually(
            lambda: target.total("cluster_frames_refused_total") == refused + count, 3, "all are refused")
        named = [line for line in target.read_log().splitlines() if "event=cluster_frame_refused" in line]
        self.assertTrue(any("from=hub-" in line and "number came before" in line for line in named), named)
        self.assertTrue(any("its version is 3; this hub's is 2" in line for line in named), named)
        self.assertEqual(target.figure('cluster_frames_refused_total{reason="version"}'), 1)
        # A member with another key: the others do not take it for one of theirs, and continue.
        stranger = self.cluster.hubs["hub-c"]
        for client in (self.world.drivers.pop("hub-c"), self.world.watchers.pop("hub-c")):
            await client.close()
        self.assertTrue(self.logged(target, "cluster_peer_joined", "hub-c"))
        await asyncio.to_thread(stranger.end)
        await eventually(lambda: self.logged(target, "cluster_peer_left", "hub-c"), 5, "its leave is logged")
        with open(f"{self.cluster.folder}/other.key", "w") as file:
            file.write("ab" * 32 + "\n")
        self.cluster.write_file("hub-c", f"{self.cluster.folder}/other.key")
        refused = target.figure('cluster_frames_refused_total{reason="mac"}')
        stranger.start()
        await eventually(
            lambda: target.figure('cluster_frames_refused_total{reason="mac"}') > refused, 10, "its frames are refused")
        self.assertTrue(any("from=hub-c" in line and "MAC" in line for line in target.read_log().splitlines()
                            if "event=cluster_frame_refused" in line), "it is named")
        since = time.time() + 0.3
        await self.world.drive(2.5)
        for pair in [("hub-a", "hub-b"), ("hub-b", "hub-a")]:
            times = [t for t in self.world.watchers[pair[1]].positions[f"trip:trip-{pair[0]}"] if t[0] >= since]
            self.assertGreater(len(times), 6, f"{pair}")
        self.assertEqual(self.world.faults(), [])

    @staticmethod
    def logged(hub, event, peer):
        return any(f"event={event} peer={peer}" in line for line in hub.read_log().splitlines())

    def record(self, port, channel, count):
        """Frames as they go by on a channel."""
        with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
            link.sendall(b"*2\r\n$9\r\nSUBSCRIBE\r\n$%d\r\n%s\r\n" % (len(channel), channel.encode()))
            stream = link.makefile("rb")

            def value():
                line = stream.readline()
                if line[:1] == b"*":
                    return [value() for _ in range(int(line[1:]))]
                return stream.read(int(line[1:]) + 2)[:-2] if line[:1] == b"$" else line
            value()
            return [value()[2] for _ in range(count)]

    async def test_a_driver_is_at_one_hub_only(self):
        chance = random.Random(SEED)
        sessions = {f"rover-{number}": [] for number in range(ROVERS)}
        gate = asyncio.Semaphore(20)

        async def come(clients, name, hub):
            async with gate:
                clients.append(await Client(hub, "driver", name).open())

        def homes(clients):
            return {client.hub.name for client in clients if client.close_code is None}
        start, refused = time.monotonic(), 0
        for number in range(1, ROUNDS + 1):
            done = await asyncio.gather(
                *(come(clients, name, self.cluster.hubs[chance.choice(NAMES)]) for name, clients in sessions.items()),
                return_exceptions=True)
            refused += sum(isinstance(error, websockets.InvalidStatus) for error in done)
            others = [e for e in done if e is not None and not isinstance(e, websockets.InvalidStatus)]
            self.assertEqual(others, [])
            if number % 10 and number < ROUNDS:
                continue
            for name, clients in sessions.items():
                # A hub lets older sessions of the same client there be for a while; at other hubs none is left.
                await eventually(
                    lambda: homes(clients) == {clients[-1].hub.name}, 3, f"{name} is at its newest hub alone")
                self.assertIsNone(clients[-1].close_code, f"{name}: the newest is the one that stays")
        print(f"\n  {ROVERS} drivers came {ROUNDS} times each, at random hubs, in {time.monotonic() - start:.0f} s: "
              f"each is at one hub; {refused} attempts were refused")
        self.assertEqual(refused, 0)
        for client in (client for clients in sessions.values() for client in clients):
            await client.close()


class TwoNodes(Crossing):
    """The bus has two nodes, of which the first is the ledger, too."""

    engines = 2

    async def test_a_node_of_the_bus_dies(self):
        await self.assert_flowing()
        for victim in (1, 0):
            end = asyncio.create_task(self.world.drive(4))
            await asyncio.sleep(1)
            self.cluster.engines[victim].kill()
            died = time.time()
            await end
            longest = 0.0
            for (owner, at), times in self.world.crossing(died - 0.5).items():
                longest = max(longest, self.world.longest_gap(times))
                self.assertLess(died + 3 - times[-1][0], 1, f"{owner} → {at} flows at the end")
            self.assertLess(longest, within(1.5 + 0.2))
            print(f"\n  bus node {victim} killed: no follower waited longer than {longest:.2f} s for a position, "
                  "of which 0.2 s are between fixes")
            self.cluster.engines[victim].start()
            await self.all_reach_the_engine()
        self.assertEqual(self.world.faults(), [])


for inherited in [name for name in dir(Crossing) if name.startswith("test_")]:
    setattr(TwoNodes, inherited, None)  # one engine is enough for these

class RevocationTests(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.keys = f"{folder.name}/keys"
        with open(self.keys, "w") as file:
            file.write("a secret of thirty-two bytes and more\n")
        self.cluster = Cluster(HUB, has_proxy=False, options=("--token-keys", self.keys))
        self.addCleanup(self.cluster.end)

    def token(self, name):
        words = [HUB, "token", "--key", self.keys, "--role", "rider", "--sub", name]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    def revoke(self, hub, name):
        request = urllib.request.Request(
            f"http://127.0.0.1:{hub.port}/v1/revocations?role=ops&id=desk", json.dumps({"sub": name}).encode())
        with urllib.request.urlopen(request, timeout=10) as reply:
            self.assertEqual(reply.status, 201)

    async def opens(self, hub, token):
        """Whether a hub takes a token; the session that it opens."""
        try:
            return await websockets.connect(f"ws://127.0.0.1:{hub.port}/v1/ws?access_token={token}", ping_interval=None)
        except websockets.InvalidStatus as refusal:
            self.assertEqual(refusal.response.status_code, 401)
            return None

    async def test_a_token_revoked_at_one_hub_is_refused_at_all_and_its_sockets_close(self):
        hubs, token = self.cluster.hubs, self.token("r1")
        sockets = [await self.opens(hub, token) for hub in hubs.values()]
        start = time.monotonic()
        await asyncio.to_thread(self.revoke, hubs["hub-a"], "r1")
        for link in sockets:
            await asyncio.wait_for(link.wait_closed(), within(5))
            self.assertEqual(link.close_code, 4401)
        seconds = time.monotonic() - start
        self.assertLess(seconds, within(1))
        print(f"all sockets were closed after {seconds * 1000:.0f} ms", flush=True)
        for hub in hubs.values():
            self.assertIsNone(await self.opens(hub, token))
        # A hub that was away hears of what was revoked meanwhile, and keeps what it knew.
        hubs["hub-c"].kill()
        other = self.token("r2")
        await asyncio.to_thread(self.revoke, hubs["hub-b"], "r2")
        hubs["hub-c"].start()
        await asyncio.to_thread(wait_until, lambda: hubs["hub-c"].figure("cluster_peers") == 2, 20, "it is back")
        self.assertIsNone(await self.opens(hubs["hub-c"], token))
        end = time.monotonic() + within(1)
        while link := await self.opens(hubs["hub-c"], other):
            await link.close()
            self.assertLess(time.monotonic(), end, "it has not heard of it")
            await asyncio.sleep(0.02)


class TripTests(unittest.TestCase):
    """A trip that a back end asks for at several hubs is one trip."""

    def setUp(self):
        self.cluster = Cluster(HUB, has_proxy=False)
        self.addCleanup(self.cluster.end)

    def begin(self, name, key):
        """The status and the trip."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.cluster.hubs[name].port}/v1/trips?role=ops&id=desk",
            json.dumps({"riderId": "r1"}).encode(), {"Idempotency-Key": key})
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, json.load(reply)["tripId"]

    def test_a_request_with_one_key_begins_one_trip_at_whichever_hubs_it_comes_to(self):
        trips = set()
        with concurrent.futures.ThreadPoolExecutor(len(NAMES)) as pool:
            for number in range(50):
                answers = list(pool.map(lambda name: self.begin(name, f"key-{number}"), NAMES))
                self.assertEqual(sorted(status for status, _ in answers), [200, 200, 201], answers)
                self.assertEqual(len({trip for _, trip in answers}), 1, answers)
                trips.add(answers[0][1])
        self.assertEqual(len(trips), 50)
        for hub in self.cluster.hubs.values():
            self.assertEqual(hub.figure("cluster_owner_conflicts_total"), 0)


class PostTests(unittest.IsolatedAsyncioTestCase):
    """A phone without a session posts to whichever hub a load balancer chooses."""

    def setUp(self):
        self.cluster = Cluster(HUB, has_proxy=False)
        self.addCleanup(self.cluster.end)

    def post(self, name, *steps):
        """How many fixes were accepted; None where the phone has to post again."""
        now = int(time.time() * 1000)
        fixes = [{"latitude": 48.1 + step * 2e-5, "longitude": 11.5, "accuracy": 5, "timestamp": now} for step in steps]
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.cluster.hubs[name].port}/v1/locations?role=driver&id=d1",
            json.dumps({"locations": fixes}).encode())
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return json.load(reply)["accepted"]
        except urllib.error.HTTPError as error:
            self.assertIn(error.code, (429, 503))
            return None

    async def test_posts_to_any_hub_are_seen_at_every_hub_and_a_dead_hub_holds_none_up(self):
        first, second, third = NAMES
        self.assertEqual(await asyncio.to_thread(self.post, first, 0), 1)
        riders = [await Client(hub, "ops", f"r-{name}").open() for name, hub in self.cluster.hubs.items()]
        for rider in riders:
            await rider.subscribe("driver:d1")
        seen = lambda rider: len(rider.positions.get("driver:d1", []))
        for step in range(1, 10):
            before = [seen(rider) for rider in riders]
            name = NAMES[step % 3]
            self.assertEqual(await asyncio.to_thread(self.post, name, step), 1, name)
            await eventually(lambda: all(seen(rider) > count for rider, count in zip(riders, before)), 3, "a position")
        self.cluster.hubs[first].kill()
        before = [seen(rider) for rider in riders[1:]]
        start, step = time.monotonic(), 10
        while await asyncio.to_thread(self.post, second, step) != 1:
            self.assertLess(time.monotonic() - start, within(20), "posts are taken where the driver's hub is dead")
            await asyncio.sleep(0.5)
        taken = time.monotonic() - start
        while not all(seen(rider) > count for rider, count in zip(riders[1:], before)):
            self.assertLess(time.monotonic() - start, within(25), "riders see the phone at its new hub")
            step += 1
            await asyncio.to_thread(self.post, third if step % 2 else second, step)
            await asyncio.sleep(0.5)
        print(f"\n  posts taken {taken:.1f} s after their hub's death, seen after {time.monotonic() - start:.1f} s")
        self.assertEqual([rider.faults for rider in riders], [[], [], []])
        for rider in riders[1:]:
            await rider.close()


class OfferTests(unittest.IsolatedAsyncioTestCase):
    """A trip is offered to the nearest driver, whichever hub it is at."""

    def setUp(self):
        self.cluster = Cluster(HUB, has_proxy=False)
        self.addCleanup(self.cluster.end)

    async def driver(self, number, name, step):
        client = await Client(self.cluster.hubs[name], "driver", f"d{number}").open()
        await client.subscribe(f"driver:d{number}")
        await client.fix(step)
        return client

    def ask(self, name, method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.cluster.hubs[name].port}{path}?role=ops&id=desk",
            None if body is None else json.dumps(body).encode(), method=method)
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)

    def request(self, name, trip, **offer):
        self.ask(name, "POST", "/v1/trips", {
            "tripId": trip, "riderId": "r1", "pickup": {"latitude": 48.1, "longitude": 11.5}, "offer": offer})

    def answers(self, name, trip):
        asked = self.ask(name, "GET", f"/v1/trips/{trip}/offers")["asked"]
        return [(one["driverId"], one["answer"]) for one in asked]

    async def restart(self, name):
        self.cluster.hubs[name].kill()
        self.cluster.hubs[name].start()
        others = [hub for hub in self.cluster.hubs.values()]
        await asyncio.to_thread(
            wait_until, lambda: all(hub.figure("cluster_peers") == 2 for hub in others), 20, f"{name} is back")

    async def test_an_offer_goes_from_hub_to_hub_and_over_kills_is_made_once(self):
        first, second, third = [
            await self.driver(number, name, 10 * number) for number, name in enumerate(["hub-b", "hub-c", "hub-b"])]
        await asyncio.sleep(1)
        self.request("hub-a", "t1", duration=120)
        way = await eventually(lambda: first.offers == [("t1", "made")], 3, "the nearest has an offer")
        print(f"\n  from the request to a driver of another hub: {way * 1000:.0f} ms")
        await first.send("offer_decline", tripId="t1")
        await eventually(lambda: first.offers[1:] == [("t1", "declined")] and first.acks == 1, 3, "it has declined")
        await eventually(lambda: second.offers == [("t1", "made")], 3, "the next one has it")
        # Its hub is killed: it comes back, and has that offer still, once.
        await self.restart("hub-c")
        point = second.points["driver:d1"]
        second = await Client(self.cluster.hubs["hub-c"], "driver", "d1").open()
        second.points["driver:d1"] = point
        await second.subscribe("driver:d1", since=point[1], epoch=point[0])
        await asyncio.sleep(1)
        self.assertEqual(second.offers, [])
        # So is the trip's.
        await self.restart("hub-a")
        self.assertEqual(self.answers("hub-b", "t1"), [("d0", "declined"), ("d1", "open")])
        await second.send("trip_status", tripId="t1", status="accepted", timestamp=int(time.time() * 1000))
        await eventually(lambda: second.acks == 1, 3, f"it has accepted: {second.errors}")
        self.assertEqual(self.answers("hub-b", "t1"), [("d0", "declined"), ("d1", "accepted")])
        self.assertEqual(self.ask("hub-c", "GET", "/v1/trips/t1")["driverId"], "d1")
        # Silence: the next one after 15 s.
        self.request("hub-c", "t2")
        await eventually(lambda: ("t2", "made") in first.offers, 3, "the nearest that is free has an offer")
        silent = await eventually(lambda: third.offers == [("t2", "made")], 20, "and then the next")
        self.assertGreater(silent, 14)
        self.assertEqual(first.offers[2:], [("t2", "made"), ("t2", "expired")])
        await asyncio.sleep(1)
        self.assertEqual(second.offers, [], "an accepting driver gets no end")
        self.assertEqual(first.faults + second.faults + third.faults, [])


class TokenTests(unittest.IsolatedAsyncioTestCase):
    """Tokens that hubs make are refreshed and ended at any of them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        key = f"{folder.name}/sign-key"
        with open(key, "w") as file:
            file.write("a secret of thirty-two bytes and more\n")
        self.cluster = Cluster(HUB, has_proxy=False, options=("--token-sign-key", key))
        self.addCleanup(self.cluster.end)

    def ask(self, name, method, path, body=None, credential="&role=ops&id=desk", headers={}):
        """The status and the answer of a hub, and when it is to be asked again."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.cluster.hubs[name].port}{path}{credential}",
            json.dumps(body).encode() if body is not None else None, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return reply.status, json.load(reply), None
        except urllib.error.HTTPError as error:
            return error.code, json.load(error), error.headers["Retry-After"]

    def begin(self, name, sub):
        status, made, _ = self.ask(name, "POST", "/v1/tokens?", {"sub": sub, "role": "rider"})
        self.assertEqual(status, 201, made)
        return made

    def refresh(self, name, token):
        return self.ask(name, "POST", "/v1/tokens/refresh", {"refreshToken": token}, credential="")

    def listed(self, name, sub):
        return self.ask(name, "GET", f"/v1/tokens?sub={sub}")[1]

    async def test_a_refresh_token_is_good_once_at_whichever_hub_it_is_shown(self):
        first = self.begin("hub-a", "r1")
        self.assertTrue(first["jti"].startswith("hub-a."))
        status, second, _ = self.refresh("hub-b", first["refreshToken"])
        self.assertEqual((status, second["jti"]), (200, first["jti"]))
        status, again, _ = self.refresh("hub-c", first["refreshToken"])
        self.assertEqual((status, again["refreshToken"]), (200, second["refreshToken"]), "its answer may be lost")
        session = await websockets.connect(
            f"ws://127.0.0.1:{self.cluster.hubs['hub-c'].port}/v1/ws?access_token={second['accessToken']}",
            ping_interval=None)
        status, third, _ = self.refresh("hub-c", second["refreshToken"])
        self.assertEqual(status, 200)
        # The first one again, by somebody else: the family ends at all hubs.
        self.assertEqual(self.refresh("hub-b", first["refreshToken"])[0], 401)
        await asyncio.wait_for(session.wait_closed(), within(5))
        self.assertEqual(session.close_code, 4401)
        for name in NAMES:
            self.assertEqual(self.refresh(name, third["refreshToken"])[0], 401)

    def test_tokens_of_one_key_are_one_family_at_whichever_hubs_they_are_asked_for(self):
        def begin(name, key, sub="r1"):
            body = {"sub": sub, "role": "rider"}
            return self.ask(name, "POST", "/v1/tokens?", body, headers={"Idempotency-Key": key})

        with concurrent.futures.ThreadPoolExecutor(len(NAMES)) as pool:
            for number in range(20):
                answers = list(pool.map(lambda name: begin(name, f"key-{number}", f"r{number}"), NAMES))
                self.assertEqual(sorted(status for status, _, _ in answers), [200, 200, 201], answers)
                self.assertEqual(len({made["refreshToken"] for _, made, _ in answers}), 1, answers)
        made = begin("hub-a", "last")[1]
        self.assertEqual(begin("hub-b", "last", "r2")[0], 409)
        self.assertEqual(self.refresh("hub-c", made["refreshToken"])[0], 200)
        self.assertEqual(begin("hub-b", "last")[0], 409, "they have been refreshed")

    async def test_the_sessions_of_all_hubs_are_counted_at_any(self):
        def sessions(name):
            return self.ask(name, "GET", "/v1/sessions?sub=r1")[1]

        links = [await websockets.connect(
            f"ws://127.0.0.1:{self.cluster.hubs[name].port}/v1/ws?role=rider&id=r1", ping_interval=None)
            for name in ("hub-a", "hub-b", "hub-b")]
        for name in NAMES:
            self.assertEqual(sessions(name), {"sub": "r1", "sessions": [{"role": "rider", "count": 3}]})
        self.cluster.hubs["hub-a"].kill()
        self.assertEqual(
            sessions("hub-c"), {"sub": "r1", "sessions": [{"role": "rider", "count": 2}], "incomplete": True})
        for link in links[1:]:
            await link.close()
        await asyncio.to_thread(
            wait_until, lambda: sessions("hub-c") == {"sub": "r1", "sessions": []}, 20, "hub-a is no member any more")

    async def test_families_of_all_hubs_are_listed_and_ended_and_wait_for_a_hub_that_is_away(self):
        made = {name: self.begin(name, "r1") for name in NAMES}
        self.assertEqual({family["jti"] for family in self.listed("hub-b", "r1")["tokens"]},
                         {tokens["jti"] for tokens in made.values()})
        self.cluster.hubs["hub-a"].kill()
        status, _, wait = self.refresh("hub-b", made["hub-a"]["refreshToken"])
        self.assertEqual((status, wait), (503, "2"))
        listed = self.listed("hub-c", "r1")
        self.assertEqual((len(listed["tokens"]), listed["incomplete"]), (2, True))
        self.cluster.hubs["hub-a"].start()

        def is_back():
            return self.listed("hub-b", "r1").get("incomplete") is None

        await asyncio.to_thread(wait_until, is_back, 20, "hub-a is back")
        status, second, _ = self.refresh("hub-b", made["hub-a"]["refreshToken"])
        self.assertEqual(status, 200, "nothing was used up")
        self.cluster.hubs["hub-a"].kill()
        wait_until(lambda: self.listed("hub-c", "r1").get("incomplete"), 20, "hub-a is not heard")
        self.assertEqual(self.ask("hub-c", "DELETE", "/v1/tokens?sub=r1")[:2], (200, {"ended": 2}))
        self.cluster.hubs["hub-a"].start()
        await asyncio.to_thread(wait_until, is_back, 20, "hub-a is back")
        wait_until(lambda: self.listed("hub-b", "r1")["tokens"] == [], 5, "hub-a has heard of the end")
        self.assertEqual(self.refresh("hub-a", second["refreshToken"])[0], 401)
        log = self.cluster.hubs["hub-b"].read_log()
        self.assertNotIn("cluster_token_key_differs", log)
        self.assertNotIn(second["refreshToken"], log)


if __name__ == "__main__":
    unittest.main(verbosity=2)
