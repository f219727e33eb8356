"""Follows a trip while a hub is upgraded, and says whether an event was lost: follow_upgrade.py TOKEN FOLDER

It posts notifications to the trip, each until the hub has it, and follows the trip's events as a browser would, with
Last-Event-ID, until the file `stop` is in the folder. Run by test_guide.py within its sandbox.
"""

import json
import os
import sys
import threading
import time

import httpx

TOKEN, FOLDER = sys.argv[1:]
HUB = httpx.Client(base_url="http://127.0.0.1:8080", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=20)


class Follower(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.last_id, self.sequences, self.openings, self.lost = "", [], 0, 0

    def run(self):
        while True:
            try:
                headers = {"Last-Event-ID": self.last_id} if self.last_id else {}
                with HUB.stream("GET", "/v1/events", params={"channel": "trip:upgrade"}, headers=headers) as answer:
                    if answer.status_code == 200:
                        self.openings += 1
                        self.read(answer)
            except httpx.TransportError:
                pass
            time.sleep(0.05)

    def read(self, answer):
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                self.last_id = value
            elif name == "data":
                message = json.loads(value)
                if message["type"] == "subscribed" and self.openings > 1 and not message["payload"]["recovered"]:
                    self.lost += 1
                if message["type"] in ("trip_update", "notification") and "sequence" in message["payload"]:
                    self.sequences.append(message["payload"]["sequence"])


def post(path, body):
    """Until it is stored, whatever happens to the hub meanwhile: with one id, so that it counts once."""
    while True:
        try:
            answer = HUB.post(path, json=body)
            if answer.status_code in (200, 201):
                return
            assert answer.status_code in (429, 503), answer.text
        except httpx.TransportError:
            pass
        time.sleep(0.05)


def main():
    post("/v1/trips", {"tripId": "upgrade", "riderId": "r1"})
    follower = Follower()
    follower.start()
    while not follower.openings:
        time.sleep(0.02)
    count = 0
    while not os.path.exists(f"{FOLDER}/stop"):
        count += 1
        post("/v1/notifications", {
            "channel": "trip:upgrade", "kind": "message", "title": "t", "body": "b", "messageId": f"n{count}"})
        open(f"{FOLDER}/following", "w").close()
        time.sleep(0.1)
    end = time.monotonic() + 20
    while len(follower.sequences) < count and time.monotonic() < end:
        time.sleep(0.02)
    first = follower.sequences[0]
    assert follower.sequences == list(range(first, first + count)), f"of {count}: {follower.sequences}"
    assert follower.openings > 1, "the upgrade has ended the stream once"
    assert follower.lost == 0, "each time the stream went on where it was"
    print(f"{count} events, each once and in order, over {follower.openings} streams")


main()
