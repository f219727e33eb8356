"""Several hubs as processes over a real engine: what each row of the table "Without the engine" says of links that are
cut, an engine that is full, a master that dies, a hub that stalls, and keys that change.

Tests/Cluster/run.sh runs it, as test_cluster.
"""

import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from cluster import NAMES, Cluster, Hub, free_ports, wait_until, within
from test_cluster import HUB, Client, World, eventually, notify


class Faults(unittest.IsolatedAsyncioTestCase):
    """A cluster, and drivers and riders at all of its hubs."""

    async def begin(self, **how):
        self.cluster = Cluster(HUB, options=("--max-sessions-per-driver", "64"), **({"has_proxy": False} | how))
        self.addCleanup(self.cluster.end)
        self.hubs = self.cluster.hubs
        self.world = await World(self.cluster).open()

    async def asyncTearDown(self):
        await self.world.close()

    async def assert_flowing(self, pairs=None, seconds=2):
        """Positions come from each hub to each, or where `pairs` says so."""
        since = time.time() + 0.3
        await self.world.drive(seconds + 0.5)
        for pair, times in self.world.crossing(since).items():
            if pairs is None or pair in pairs:
                self.assertGreater(len(times), seconds * 3, f"{pair[0]} → {pair[1]}")

    async def reach(self, names, status, seconds):
        """How long it takes until hubs say whether they reach the engine."""
        return await eventually(
            lambda: all(self.hubs[name].get("/readyz?engine")[0] == status for name in names), seconds,
            f"{names} answer {status}")

    async def converge(self, seconds, what):
        numbers = [await asyncio.to_thread(notify, hub, f"trip:trip-{name}", 1) for name, hub in self.hubs.items()]
        return await eventually(lambda: self.world.converged(numbers), seconds, what)


class CutOffTests(Faults):
    """Hubs that lose their way to the engine."""

    async def clients_of(self, hubs):
        """Sessions that come by the proxy, by the hub that has them."""
        before = {name: hub.figure('sessions{role="ops"}') for name, hub in hubs.items()}

        class Address:
            port = self.cluster.listen

        clients = [await Client(Address, "ops", f"desk-{number}").open() for number in range(6)]
        await asyncio.sleep(0.3)
        counts = {name: hub.figure('sessions{role="ops"}') - before[name] for name, hub in hubs.items()}
        for client in clients:
            await client.close()
        await asyncio.sleep(0.3)
        return counts

    async def assert_served_by(self, names, what):
        """Within 10 s (the proxy asks hubs each 2 s) it sends six clients to these hubs, to each and to no other."""
        last = time.monotonic() + within(10)
        while True:
            counts = await self.clients_of(self.hubs)
            if sum(counts.values()) == 6 and {name for name in counts if counts[name]} == names:
                return
            self.assertLess(time.monotonic(), last, f"{what}: {counts}")

    async def test_a_hub_that_is_cut_off_is_left_by_the_proxy_and_all_are_not(self):
        await self.begin(has_proxy=True, has_relays=True)
        self.cluster.relays["hub-b"][0].cut()
        took = await self.reach(["hub-b"], 503, 5)
        print(f"\n  a hub is cut off: it says so after {took:.1f} s", flush=True)
        await self.assert_served_by({"hub-a", "hub-c"}, "nobody comes to a hub that is cut off")
        since = time.time()
        await self.world.drive(2)
        crossing = self.world.crossing(since)
        for name in NAMES:
            self.assertGreater(len(crossing[name, name]), 6, f"{name} serves its own")
        for pair in [("hub-a", "hub-c"), ("hub-c", "hub-a")]:
            self.assertGreater(len(crossing[pair]), 6, f"{pair}")
        self.assertEqual(crossing["hub-b", "hub-a"], [])
        log = self.hubs["hub-b"].read_log()
        self.assertIn("event=cluster_ledger_down", log)
        self.assertRegex(log, r"event=cluster_ledger_down .*hub-b\.cluster:\d+: ledger")
        for name in ("hub-a", "hub-c"):
            self.cluster.relays[name][0].cut()
        await self.reach(NAMES, 503, 5)
        await self.assert_served_by(set(NAMES), "all are cut off, and all serve")
        numbers = [await asyncio.to_thread(notify, hub, f"trip:trip-{name}", 1) for name, hub in self.hubs.items()]
        for relays in self.cluster.relays.values():
            relays[0].restore()
        took = await eventually(lambda: self.world.converged(numbers), 3.5, "all are at the newest event")
        print(f"  all hubs were cut off: converged {took:.2f} s after that")
        await self.reach(NAMES, 200, 3)
        await self.assert_flowing()
        self.assertEqual(self.world.faults(), [])

    async def test_a_hub_that_reaches_one_node_of_the_bus_only_is_heard_and_hears(self):
        await self.begin(engines=3, has_relays=True)
        for cut in (1, 2):
            for name in NAMES:
                self.cluster.relays[name][cut].cut(has_error=True)
                await asyncio.sleep(2)
                await self.assert_flowing()
                self.assertEqual(self.hubs[name].get("/readyz?engine")[0], 200)
                missed = self.hubs[name].figure("cluster_frames_missed_total")
                await self.world.drive(3)
                self.assertEqual(
                    self.hubs[name].figure("cluster_frames_missed_total"), missed, "nothing is lost in trying")
                self.cluster.relays[name][cut].restore()
        await self.converge(3, "all are at the newest event")
        self.assertEqual(self.world.faults(), [])

    async def test_a_hub_that_is_cut_off_silently_from_a_node_of_the_bus_is_heard_and_hears(self):
        await self.begin(engines=3, has_relays=True)
        await self.assert_flowing()
        waits = []
        for cut in (1, 2):
            for name in NAMES:
                since = time.time()
                self.cluster.relays[name][cut].cut()
                await self.world.drive(4)
                for pair, times in self.world.crossing(since).items():
                    moments = [since, *[received for received, _ in times], time.time()]
                    waits.append(max(later - before for before, later in zip(moments, moments[1:])))
                    self.assertLess(waits[-1], within(1.5 + 0.2), f"{pair[0]} → {pair[1]}, without node {cut} at {name}")
                await self.assert_flowing(seconds=1)  # without it
                self.cluster.relays[name][cut].restore()
                await self.assert_flowing(seconds=1)
        print(f"\n  a hub is cut off silently from a node of the bus: no follower waited over {max(waits):.2f} s")
        self.assertGreater(max(waits), 0.5, "a node that was cut off was used")
        await self.converge(3, "all are at the newest event")
        self.assertEqual(self.world.faults(), [])


class EngineTests(Faults):
    """The ledger is full, or its master dies."""

    async def test_a_ledger_that_has_no_memory_left(self):
        await self.begin()
        port, hub = self.cluster.engine_ports[0], self.hubs["hub-a"]
        since = time.monotonic()
        self.assertEqual(Cluster.ask_engine(port, "CONFIG", "SET", "maxmemory", "1"), b"+OK\r\n")
        await eventually(lambda: hub.figure("cluster_ledger_refused_total") > 0, 5, "it refuses")
        late = [await Client(hub, "driver", f"late-{number}").open() for number in range(20)]
        await self.assert_flowing(seconds=4)
        lines = [line for line in hub.read_log().splitlines() if "event=cluster_ledger_refused" in line]
        self.assertIn("OOM", lines[0])
        self.assertLess(len(lines), time.monotonic() - since + 1, "once a second at most")
        self.assertGreater(hub.figure("cluster_ledger_refused_total"), len(lines))
        self.assertGreater(hub.figure("cluster_unclaimed"), 0)
        await eventually(
            lambda: 0 < hub.figure("cluster_ledger_memory_limit_bytes") < hub.figure("cluster_ledger_memory_bytes"), 15,
            "its memory is known")
        self.assertEqual(Cluster.ask_engine(port, "CONFIG", "SET", "maxmemory", "256mb"), b"+OK\r\n")
        took = await eventually(lambda: hub.figure("cluster_unclaimed") == 0, 5, "all are claimed")
        print(f"\n  a ledger was full: {len(lines)} lines in the log; drivers were claimed {took:.1f} s later")
        self.assertIn("at hub-a", self.cluster.status("--driver", "late-7").stdout)
        for client in late:
            await client.close()
        self.assertEqual(self.world.faults(), [])

    async def test_two_ledgers_divide_the_trips_and_drivers(self):
        await self.begin(engines=2, ledgers=2)
        more = [await Client(self.hubs[NAMES[number % 3]], "driver", f"more-{number}").open() for number in range(20)]
        await eventually(
            lambda: all(hub.figure("cluster_unclaimed") == 0 for hub in self.hubs.values()), 5, "all are claimed")
        known = [sum(Cluster.ask_engine(port, "EXISTS", f"lh:o:d:more-{number}") == b":1\r\n" for number in range(20))
                 for port in self.cluster.engine_ports]
        self.assertEqual(sum(known), 20)
        self.assertGreater(min(known), 0)
        await self.assert_flowing()
        for number in range(3):
            self.assertIn(f"at {NAMES[number]}", self.cluster.status("--driver", f"more-{number}").stdout)
        # Without one of them each hub serves its own.
        self.cluster.engines[1].kill()
        await self.reach(NAMES, 503, 5)
        await self.assert_flowing(pairs=[(name, name) for name in NAMES])
        self.cluster.engines[1].start()
        took = await self.reach(NAMES, 200, 5)
        print(f"\n  two ledgers have {known} of 20 drivers; one of them killed: used again after {took:.1f} s")
        await self.converge(3, "all are at the newest event")
        await self.assert_flowing()
        for client in more:
            await client.close()
        self.assertEqual(self.world.faults(), [])

    async def test_sentinels_choose_another_master(self):
        await self.begin(engines=2, sentinels=3)
        await self.assert_flowing()
        replica = self.cluster.replica_port
        await eventually(
            lambda: Cluster.ask_engine(replica, "EXISTS", "lh:o:d:driver-hub-b") == b":1\r\n", 5, "the replica has it")

        def times(event):
            return [hub.read_log().count(f"event={event}") for hub in self.hubs.values()]

        down, up = times("cluster_ledger_down"), times("cluster_ledger_up")
        self.cluster.engines[0].kill()
        died, since = time.monotonic(), time.time()
        while not all(now > before for now, before in zip(times("cluster_ledger_up"), up)):
            self.assertLess(time.monotonic() - died, within(8), "another master is found")
            await self.world.drive(0.2)
        took = time.monotonic() - died
        self.assertTrue(all(now > before for now, before in zip(times("cluster_ledger_down"), down)), "it was missed")
        gap = max(self.world.longest_gap(times) for times in self.world.crossing(since).values())
        self.assertLess(gap, within(1.5), "positions go on, as the bus is elsewhere")
        # It knows what the old one knew, and takes what is new.
        rover = await Client(self.hubs["hub-c"], "driver", "driver-hub-b").open()
        await eventually(lambda: self.world.drivers["hub-b"].close_code == 4409, 3, "the older session is ended")
        print(f"\n  the ledger's master killed: another {took:.1f} s later, no position late by over {gap:.1f} s")
        await rover.close()
        # A sentinel that dies changes nothing.
        self.cluster.sentinels[0].kill()
        late = await Client(self.hubs["hub-a"], "driver", "late").open()
        await eventually(
            lambda: Cluster.ask_engine(replica, "HGET", "lh:o:d:late", "owner") == b"$5\r\nhub-a\r\n", 3,
            "it is claimed")
        await late.close()
        self.assertEqual(self.world.faults(), [])


class HubTests(Faults):
    """A hub that stalls, keys that change, and what three hubs find together."""

    async def test_a_hub_that_stalls_under_a_flood_holds_up_nobody(self):
        await self.begin()
        hub = self.hubs["hub-c"]
        free = [await Client(self.hubs["hub-a"], "driver", f"flood-{number}").open() for number in range(50)]
        rider = await Client(hub, "ops", "flood").open()
        for client in free:
            await rider.subscribe(f"driver:{client.name}")

        async def flood(step):
            for client in free:
                await client.fix(step)

        await self.world.drive(1, flood)
        hub.stop()
        since = time.time()
        await self.world.drive(6, flood)
        others = [times for pair, times in self.world.crossing(since).items() if "hub-c" not in pair]
        for times in others:
            self.assertGreater(len(times), 15, "the others go on")  # of 24 at least
        gap = max(self.world.longest_gap(times) for times in others)
        self.assertLess(gap, within(1), "the others go on")
        self.assertLess(self.hubs["hub-a"].figure("process_resident_memory_bytes"), 500e6)
        numbers = [await asyncio.to_thread(notify, self.hubs[name], f"trip:trip-{name}", 1) for name in NAMES[:2]]
        hub.resume()
        took = await eventually(
            lambda: [self.world.point(name, "hub-c")[1] for name in NAMES[:2]] == numbers, 3, "it has all events")
        print(f"\n  a hub stalled for 6 s under a flood: it had all events {took:.2f} s after it went on")
        await self.world.drive(2, flood)
        newest = max(stamp for _, stamp in rider.positions["driver:flood-49"])
        self.assertLess(time.time() - newest / 1000, within(1.5))
        for client in [*free, rider]:
            await client.close()
        self.assertEqual(self.world.faults() + rider.faults, [])

    async def test_keys_change_hub_by_hub(self):
        await self.begin()
        with open(f"{self.cluster.folder}/cluster.key") as file:
            old = file.read().strip()
        new = secrets.token_hex(32)
        await self.world.close()
        for lines in ([old, new], [new, old], [new]):
            path = f"{self.cluster.folder}/{len(lines)}{lines[0][:8]}.key"
            with open(path, "w") as file:
                file.write("\n".join(lines) + "\n")
            for name, hub in self.hubs.items():
                await asyncio.to_thread(hub.end)
                self.cluster.write_file(name, path)
                hub.start()
                await asyncio.to_thread(
                    wait_until, lambda: all(
                        other.figure("cluster_peers") == 2 and other.figure("cluster_silent_peers") == 0
                        for other in self.hubs.values()), 20, f"all hear each other with {name} restarted")
                driver = await Client(hub, "driver", "rover").open()
                await driver.fix(0)
                elsewhere = self.hubs[NAMES[(NAMES.index(name) + 1) % 3]]
                rider = await Client(elsewhere, "ops", "desk").open()
                await rider.subscribe("driver:rover")
                await driver.fix(1)
                await eventually(lambda: rider.positions.get("driver:rover"), 3, "a position crosses")
                await driver.close()
                await rider.close()
        for hub in self.hubs.values():
            self.assertNotIn("MAC", hub.read_log())

    async def test_three_hubs_find_what_one_hub_with_all_drivers_finds(self):
        await self.begin()
        port, admin = free_ports(2)
        alone = Hub(HUB, "alone", port, admin, "", self.cluster.folder)
        self.addCleanup(alone.end)
        await asyncio.to_thread(wait_until, lambda: alone.get("/readyz")[0] == 200, 20, "the oracle is there")
        drivers = []
        for number in range(60):
            hub = self.hubs[NAMES[number % 3]]
            drivers.append([await Client(one, "driver", f"d{number}").open() for one in (hub, alone)])
        others = [await Client(alone, "driver", f"driver-{name}").open() for name in NAMES]
        for name, client in zip(NAMES, others):
            await client.fix(0, f"trip-{name}")
        maps = [await Client(hub, "ops", "map").open() for hub in (alone, self.hubs["hub-b"])]
        for client in maps:
            await client.subscribe("box:11.4,48.01,11.6,48.2")
        for step in range(20):
            for number, pair in enumerate(drivers):
                for client in pair:
                    await client.fix(number * 7 + step * 3)
            await asyncio.sleep(0.2)
        count = 20 * len(drivers) + len(NAMES)
        for those in ([alone], self.hubs.values()):
            await eventually(
                lambda: sum(hub.figure("fixes_received_total") for hub in those) >= count, 5, "they have all fixes")
        await asyncio.sleep(1.5)

        def ask(hub, path):
            with urllib.request.urlopen(f"http://127.0.0.1:{hub.port}/v1/{path}&role=ops&id=desk", timeout=10) as reply:
                return [(driver["driverId"], driver.get("distance")) for driver in json.load(reply)["drivers"]]

        found = 0
        for path in [f"drivers/nearby?latitude={48.1 + step * 1e-3:.4f}&longitude=11.5&radius={radius}&limit={limit}"
                     for step in range(8) for radius in (200, 800, 5000) for limit in (5, 100)] + [
                         "drivers/within?bbox=11.4,48.1,11.6,48.105"]:
            expected = await asyncio.to_thread(ask, alone, path)
            every = dict(await asyncio.to_thread(ask, alone, path.replace("limit=5", "limit=100")))
            found += len(expected)
            for name in NAMES:
                answer = await asyncio.to_thread(ask, self.hubs[name], path)
                self.assertEqual(len(dict(answer)), len(expected), path)
                # Two hubs get a fix at different times, so that what they publish differs by a metre or two: drivers
                # that are as far may be in another order.
                for (driver, a), (_, b) in zip(answer, expected):
                    self.assertIn(driver, every, path)
                    for there in (b, every[driver]):
                        self.assertAlmostEqual(a or 0, there or 0, delta=2, msg=path)
        self.assertGreater(found, 500)
        shown = [client.map.drivers for client in maps]
        self.assertEqual(len(shown[0]), 63)
        self.assertEqual(shown[0].keys(), shown[1].keys())
        for name, (_, driver) in shown[0].items():
            self.assertAlmostEqual(driver["latitude"], shown[1][name][1]["latitude"], delta=1e-4, msg=name)
        print(f"\n  {found} drivers found by one hub, the same by three; 63 on the map of each")
        for client in [client for pair in drivers for client in pair] + maps + others:
            await client.close()


class DemoTests(unittest.TestCase):
    """`make demo-cluster`."""

    def test_the_demo_shows_what_crosses_between_its_hubs_and_leaves_nothing_behind(self):
        folder = os.path.dirname(os.path.abspath(__file__))
        with tempfile.TemporaryDirectory(prefix="demo-") as temporary:
            demo = subprocess.run(
                [sys.executable, f"{folder}/demo.py", "--hub", HUB, "--drivers", "40", "--duration", "15"],
                capture_output=True, text=True, timeout=300, env={**os.environ, "TMPDIR": temporary})
            self.assertEqual(demo.returncode, 0, demo.stdout + demo.stderr)
            self.assertEqual(os.listdir(temporary), [], "it removes its files")
            left = [line for line in subprocess.check_output(["ps", "-eo", "args"], text=True).splitlines()
                    if temporary in line]
            self.assertEqual(left, [], "it ends its processes")
        heads = next(line.split() for line in demo.stdout.splitlines() if line.startswith("hub  ") and "KB/s" in line)
        self.assertEqual(heads, "hub drivers riders fixes/s positions/s follows out/s in/s frames/s KB/s CPU %".split())
        rows = [line.split() for line in demo.stdout.splitlines() if re.match(r"hub-[abc] +\d+ ", line)]
        last = {name: cells for name, *cells in rows}
        self.assertEqual(set(last), set(NAMES), demo.stdout)
        figures = {name: dict(zip(heads[1:], map(float, cells))) for name, cells in last.items()}
        self.assertEqual(sum(each["drivers"] for each in figures.values()), 40)
        for name, each in figures.items():
            for title in ("drivers", "riders", "fixes/s", "positions/s", "follows", "out/s", "in/s"):
                self.assertGreater(each[title], 0, f"{name}: {title}\n{demo.stdout}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
