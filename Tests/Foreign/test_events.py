"""Server-Sent Events as somebody else's library reads them: PyPI's `httpx-sse`, through kill -9 and cuts.

Run it with Tests/Foreign/run.sh, which builds the environment that it needs.
"""

import asyncio
import json
import os
import time
import unittest

import httpx
from hub_process import HubProcess as Hub
from httpx_sse import aconnect_sse

KILLS = int(os.environ.get("KILLS", "3"))
CUTS = int(os.environ.get("CUTS", "60"))
MOVES = [
    "accepted", "driver_en_route", "arrived_pickup", "trip_started", "arrived_destination", "completed",
]


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
            # With the id of where it begins, without which a stream that is cut goes on anywhere.
            await self.wait(lambda: follower.last_id)
            moves = [(trip, "requested") for trip in trips] + [(trip, move) for move in MOVES for trip in trips]
            moves = [("note", number) if number % 2 else moves.pop(0) for number in range(2 * len(moves))]
            kill_at = {1 + number * len(moves) // KILLS for number in range(KILLS)}
            events, kills = dict.fromkeys(trips, 0), 0
            for number, (trip, move) in enumerate(moves):
                if number in kill_at:
                    kills += 1
                    await self.wait(lambda: follower.opened >= kills)  # so that each kill -9 cuts a stream
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
            self.assertGreater(follower.opened, KILLS, "each kill -9 has cut the stream")
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
        async with httpx.AsyncClient(limits=httpx.Limits(max_connections=8), timeout=60) as client:
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
                # A hub keeps the last 256 events of a channel, and each opening takes one or two of them.
                await self.wait(lambda: sent - len(follower.events) < 200)
            follower.cut = None
            await self.wait(lambda: follower.events and follower.events[-1][1] == sent)
            follower.over = True
            task.cancel()
            numbers = [sequence for _, sequence in follower.events]
            self.assertEqual(numbers, list(range(numbers[0], sent + 1)), "each event once, in order")
            self.assertEqual(follower.lost, 0)
            self.assertGreater(follower.opened, CUTS)
        hub.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
