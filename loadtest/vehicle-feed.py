#!/usr/bin/env python3
"""What a GTFS-realtime feed of all vehicles costs: how long it takes, the hub's CPU time for it, and how long others wait
meanwhile.

    loadtest/vehicle-feed.py .build/release/locationhub [VEHICLES] [FEEDS]

A feed is kept for 5 s, so each is asked for when the one before is too old. Beside it somebody asks for nothing
(`/healthz`) again and again. Exit code 1 where the median feed takes over 20 ms of the hub's CPU time.
"""

import http.client
import json
import os
import select
import socket
import statistics
import subprocess
import sys
import threading
import time

KEPT_SECONDS = 5.1
PATIENCE = 60  # seconds until the hub listens, or answers


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ask(connection, method, target, body=None):
    connection.request(method, target, None if body is None else json.dumps(body))
    answer = connection.getresponse()
    said = answer.read()
    assert answer.status == 200, (answer.status, said)
    return said


def cpu(process):
    """Seconds, to the nanosecond, of all threads."""
    folder = f"/proc/{process.pid}/task"
    return sum(int(open(f"{folder}/{thread}/schedstat").read().split()[0]) for thread in os.listdir(folder)) / 1e9


class Bystander(threading.Thread):
    """Asks for nothing, and notes how long each answer took."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.connection, self.waits, self.is_over = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE), [], False

    def run(self):
        while not self.is_over:
            start = time.monotonic()
            ask(self.connection, "GET", "/healthz")
            self.waits.append((start, time.monotonic() - start))
            time.sleep(0.001)


def main():
    hub = sys.argv[1]
    vehicles, feeds = (int(text) for text in (sys.argv[2:] + ["10000", "12"][len(sys.argv) - 2:])[:2])
    port = free_port()
    process = subprocess.Popen(
        [hub, "serve", "--port", str(port), "--dev-auth", "--no-journal", "--loops", "1", "--log-level", "error"],
        stdout=subprocess.PIPE)
    try:
        assert select.select([process.stdout], [], [], PATIENCE)[0], f"the hub does not listen after {PATIENCE} s"
        assert process.stdout.readline(), "the hub has ended before it listened"
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        times, costs, most = [], [], []

        def move():
            now = int(time.time() * 1000)
            for number in range(vehicles):
                fix = {"latitude": 48 + number % 100 / 1000, "longitude": 11 + number // 100 / 1000, "timestamp": now,
                       "speed": 8, "heading": 90, "accuracy": 5}
                ask(connection, "POST", f"/v1/locations?role=driver&id=driver-{number}", fix)

        for _ in range(feeds):
            move()  # that they are online, and that the feed before is too old
            time.sleep(KEPT_SECONDS)
            before, start = cpu(process), time.monotonic()
            body = ask(connection, "GET", "/v1/gtfs-realtime/vehicle-positions?role=ops&id=o")
            times.append(1000 * (time.monotonic() - start))
            costs.append(1000 * (cpu(process) - before))
        bystander = Bystander(port)
        bystander.start()
        for _ in range(feeds):
            move()
            time.sleep(KEPT_SECONDS)
            start = time.monotonic()
            ask(connection, "GET", "/v1/gtfs-realtime/vehicle-positions?role=ops&id=o")
            end = time.monotonic()
            time.sleep(0.2)  # who asked meanwhile has its answer
            most.append(1000 * max(
                (wait for begun, wait in bystander.waits if begun <= end and begun + wait >= start), default=0))
        bystander.is_over = True
        bystander.join()
        for what, values in (("feed, ms", times), ("CPU of the hub, ms", costs), ("longest wait beside it, ms", most)):
            print(f"{what}: {statistics.median(values):.1f} ({min(values):.1f}–{max(values):.1f})")
        print(f"{vehicles} vehicles, {len(body)} bytes")
    finally:
        process.terminate()
        process.wait()
    sys.exit(0 if statistics.median(costs) < 20 else 1)


main()
