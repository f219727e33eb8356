"""Server-Sent Events as somebody else's library reads them: PyPI's `httpx-sse`, through kill -9, cuts and proxies.

Run it with Tests/Foreign/run.sh, which builds the environment that it needs.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
import unittest

import httpx
from httpx_sse import aconnect_sse

KILLS = int(os.environ.get("KILLS", "3"))
CUTS = int(os.environ.get("CUTS", "60"))
MOVES = [
    "accepted", "driver_en_route", "arrived_pickup", "trip_started", "arrived_destination", "completed",
]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Hub:
    """A hub that keeps its journal and its port over the death of its process."""

    def __init__(self, journal=True):
        self.folder = tempfile.TemporaryDirectory()
        self.port = free_port()
        self.journal = ["--data", self.folder.name] if journal else ["--no-journal"]
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [os.environ["LOCATIONHUB"], "serve", "--port", str(self.port), "--dev-auth", "--session-rate", "0",
             "--log-level", "error", *self.journal],
            stdout=subprocess.PIPE, text=True)
        assert "ws://" in self.process.stdout.readline()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(15)
        self.process.stdout.close()
        self.folder.cleanup()
        assert status == 0, "SIGTERM ends the hub in order"

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"


def message(kind, message_id, **payload):
    return {"type": kind, "payload": payload, "timestamp": int(time.time() * 1000), "messageId": message_id}


async def post(client, hub, envelope):
    """Until it is acked, whatever happens to the hub meanwhile: with the same id, so that it counts once."""
    while True:
        try:
            answer = await client.post(hub.url("/v1/messages?role=ops&id=o1"), json=envelope, timeout=5)
            if answer.status_code == 200:
                assert answer.json()["type"] == "ack"
                return
            assert answer.status_code in (429, 503), answer.text
        except httpx.TransportError:
            pass
        await asyncio.sleep(0.05)


class Follower:
    """Follows channels as a browser does: opens its stream again where that ends, with the id of the last event."""

    def __init__(self, client, hub, channels, cut=None):
        self.client, self.hub, self.cut = client, hub, cut
        self.query = [("channel", channel) for channel in channels] + [("role", "ops"), ("id", "o1")]
        self.last_id, self.events, self.opened, self.lost = "", [], 0, 0
        self.over = False

    async def run(self):
        while not self.over:
            headers = {"Last-Event-ID": self.last_id} if self.last_id else {}
            try:
                async with aconnect_sse(
                    self.client, "GET", self.hub.url("/v1/events"), params=self.query, headers=headers, timeout=20
                ) as source:
                    if source.response.status_code != 200:
                        assert source.response.status_code in (429, 503), source.response.status_code
                        await asyncio.sleep(0.05)
                        continue
                    self.opened += 1
                    await self.follow(source)
            except httpx.TransportError:
                await asyncio.sleep(0.02)  # a real client waits for `retry`

    async def follow(self, source):
        count = 0
        async for event in source.aiter_sse():
            if event.id:
                self.last_id = event.id
            if not event.data:
                continue  # `retry` or `id` alone: an EventSource dispatches nothing
            got = json.loads(event.data)
            if got["type"] == "subscribed" and self.opened > 1 and not got["payload"]["recovered"]:
                self.lost += got["payload"]["channel"].startswith("trip:")  # the fleet has nothing to recover
            if got["type"] in ("trip_update", "notification"):
                self.events.append((got["payload"]["channel"], got["payload"]["sequence"]))
                count += 1
            if self.over or self.cut and self.cut(count):
                return


class EventStreams(unittest.IsolatedAsyncioTestCase):
    def check(self, follower, channel, count):
        numbers = [sequence for name, sequence in follower.events if name == channel]
        self.assertEqual(numbers, list(range(1, count + 1)), f"{channel}: each event once, in order")
        self.assertEqual(follower.lost, 0)

    async def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "it did not come")
            await asyncio.sleep(0.02)

    async def test_a_trip_is_followed_over_kill_9_without_one_event_lost_or_doubled(self):
        hub = Hub()
        async with httpx.AsyncClient() as client:
            trips = ["K1", "K2"]
            follower = Follower(client, hub, [f"trip:{trip}" for trip in trips])
            task = asyncio.create_task(follower.run())
            await self.wait(lambda: follower.opened == 1)
            moves = [(trip, "requested") for trip in trips] + [(trip, move) for move in MOVES for trip in trips]
            moves = [("note", number) if number % 2 else moves.pop(0) for number in range(2 * len(moves))]
            kill_at = {1 + number * len(moves) // KILLS for number in range(KILLS)}
            events = dict.fromkeys(trips, 0)
            for number, (trip, move) in enumerate(moves):
                if number in kill_at:
                    # In the middle of it: the move is under way when the hub dies.
                    pending = asyncio.create_task(self.act(client, hub, trip, move, number))
                    await asyncio.sleep(0.002 * (number % 5))
                    hub.kill()
                    hub.start()
                    await pending
                else:
                    await self.act(client, hub, trip, move, number)
                events[trips[0] if trip == "note" else trip] += 1
            await self.wait(lambda: len(follower.events) >= sum(events.values()))
            await asyncio.sleep(0.2)
            follower.over = True
            task.cancel()
            for trip in trips:
                self.check(follower, f"trip:{trip}", events[trip])
            self.assertGreaterEqual(follower.opened, KILLS, "each kill -9 has cut the stream")
        hub.stop()

    async def act(self, client, hub, trip, move, number):
        """A move of a trip, or a notification beside it."""
        if trip != "note":
            payload = {"tripId": trip, "status": move, "timestamp": int(time.time() * 1000)}
            if move == "requested":
                payload["driverId"] = f"d-{trip}"
            return await post(client, hub, message("trip_status", f"{trip}-{move}", **payload))
        body = {"channel": "trip:K1", "kind": "message", "title": "t", "body": "b", "messageId": f"n{number}"}
        while True:
            try:
                answer = await client.post(hub.url("/v1/notifications?role=ops&id=o1"), json=body, timeout=5)
                if answer.status_code in (200, 201):
                    return
                assert answer.status_code in (429, 503), answer.text
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.05)

    async def test_cuts_lose_and_double_nothing(self):
        hub = Hub(journal=False)
        async with httpx.AsyncClient(limits=httpx.Limits(max_connections=8)) as client:
            # A stream is cut after each event or two; meanwhile events come without a pause.
            follower = Follower(client, hub, ["trip:C1", "fleet"], cut=lambda count: count >= 1 + follower.opened % 2)
            await post(client, hub, message("trip_status", "r", tripId="C1", status="requested", timestamp=1763680000000))
            task = asyncio.create_task(follower.run())
            await self.wait(lambda: follower.opened == 1)
            sent = 1
            while follower.opened <= CUTS:
                body = {"channel": "trip:C1", "kind": "message", "title": "t", "body": "b"}
                answer = await client.post(hub.url("/v1/notifications?role=ops&id=o1"), json=body)
                self.assertIn(answer.status_code, (200, 201))
                sent += 1
            follower.cut = None
            await self.wait(lambda: follower.events and follower.events[-1][1] == sent)
            follower.over = True
            task.cancel()
            numbers = [sequence for _, sequence in follower.events]
            self.assertEqual(numbers, list(range(numbers[0], sent + 1)), "each event once, in order")
            self.assertEqual(follower.lost, 0)
            self.assertGreater(follower.opened, CUTS)
        hub.stop()


class Proxies(unittest.IsolatedAsyncioTestCase):
    """The same stream direct, through nginx and through HAProxy: when do positions come?"""

    def nginx(self, folder, port, hub):
        with open(f"{folder}/nginx.conf", "w") as file:
            file.write(f"""
                daemon off; pid {folder}/nginx.pid; error_log /dev/null crit;
                events {{}}
                http {{
                  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
                  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
                  server {{
                    listen 127.0.0.1:{port};
                    location / {{ proxy_pass http://127.0.0.1:{hub.port}; proxy_http_version 1.1;
                                  proxy_set_header Connection ""; }}
                  }}
                }}""")
        return ["nginx", "-c", f"{folder}/nginx.conf"]

    def haproxy(self, folder, port, hub):
        with open(f"{folder}/haproxy.cfg", "w") as file:
            file.write(f"""
defaults
  mode http
  option http-no-delay
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:{port}
  default_backend hub
backend hub
  server one 127.0.0.1:{hub.port}
""")
        return ["haproxy", "-f", f"{folder}/haproxy.cfg"]

    async def arrivals(self, client, url, token, times):
        params = {"channel": "driver:d1", "access_token": token}
        async with aconnect_sse(client, "GET", url, params=params, timeout=30) as source:
            source.response.raise_for_status()
            async for event in source.aiter_sse():
                if not event.data:
                    continue
                got = json.loads(event.data)
                if got["type"] == "subscribed":
                    times["open"] = time.monotonic()
                if got["type"] == "driver_location":
                    times[got["payload"]["timestamp"]] = time.monotonic()

    async def test_positions_come_no_later_through_proxies(self):
        for name in ("nginx", "haproxy"):
            if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"):
                self.skipTest(f"there is no {name}")
        os.environ["PATH"] += ":/usr/sbin:/usr/local/sbin"
        with tempfile.TemporaryDirectory() as folder:
            key = "0123456789abcdef0123456789abcdef"
            with open(f"{folder}/keys", "w") as file:
                file.write(key + "\n")
            hub = Hub.__new__(Hub)
            hub.folder, hub.port = tempfile.TemporaryDirectory(), free_port()
            hub.journal = ["--no-journal", "--token-keys", f"{folder}/keys"]
            hub.start()
            tokens = {
                role: subprocess.run(
                    [os.environ["LOCATIONHUB"], "token", "--key", f"{folder}/keys", "--role", role, "--sub", sub],
                    capture_output=True, text=True, check=True).stdout.strip()
                for role, sub in (("ops", "o1"), ("driver", "d1"))
            }
            ports = {"nginx": free_port(), "haproxy": free_port()}
            running = [
                subprocess.Popen(self.nginx(folder, ports["nginx"], hub), stderr=subprocess.DEVNULL),
                subprocess.Popen(self.haproxy(folder, ports["haproxy"], hub), stderr=subprocess.DEVNULL),
            ]
            try:
                await self.compare(hub, ports, tokens)
            finally:
                for process in running:
                    process.terminate()
                    process.wait()
            hub.stop()

    async def compare(self, hub, ports, tokens):
        await asyncio.sleep(1)
        async with httpx.AsyncClient() as client:
            times = {way: {} for way in ("direct", "nginx", "haproxy")}
            urls = {way: hub.url("/v1/events") if way == "direct" else f"http://127.0.0.1:{ports[way]}/v1/events"
                    for way in times}
            tasks = [
                asyncio.create_task(self.arrivals(client, urls[way], tokens["ops"], times[way])) for way in times]
            end = time.monotonic() + 20
            while not all("open" in seen for seen in times.values()):
                for task in tasks:
                    if task.done():
                        task.result()
                self.assertLess(time.monotonic(), end, "the streams open at once, and nothing is held back")
                await asyncio.sleep(0.02)
            first = int(time.time() * 1000) - 60_000
            for step in range(40):
                fix = {"latitude": 37 + step / 11_119.5, "longitude": -122, "accuracy": 5, "timestamp": first + step * 1000}
                answer = await client.post(
                    hub.url("/v1/locations"), json=fix, headers={"Authorization": f"Bearer {tokens['driver']}"})
                self.assertEqual(answer.status_code, 200, answer.text)
                await asyncio.sleep(0.05)
            await asyncio.sleep(1)
            for task in tasks:
                task.cancel()
            direct = times.pop("direct")
            direct.pop("open")
            self.assertEqual(len(direct), 40)
            for way, seen in times.items():
                late = [1000 * (seen[stamp] - direct[stamp]) for stamp in direct]
                print(f"{way}: {statistics.median(late):.1f} ms later than direct, at most {max(late):.1f} ms")
                self.assertLess(statistics.median(late), 50)


if __name__ == "__main__":
    unittest.main(verbosity=2)
