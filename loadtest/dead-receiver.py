#!/usr/bin/env python3
"""What a webhook's receiver that takes requests and answers none costs all others: the p99 of deliveries, and memory.

    loadtest/dead-receiver.py .build/release/locationhub [SUBSCRIBERS] [FIXES A SECOND] [SECONDS] [ROUNDS]

A driver moves, so many subscribers follow its channel, and 50 events a second come for a webhook. Its receiver answers at
once, or never, in turn. The p99 is the hub's own, of each second, from its channel `stats`: from reading a fix to the
write. Exit code 1 where the median of the rounds' ratios is over 1.05, or the memory of both differs by over 1 MB.
"""

import base64
import http.client
import importlib.util
import json
import os
import pathlib
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

place = pathlib.Path(__file__).with_name("event-streams.py")
streams = importlib.util.module_from_spec(importlib.util.spec_from_file_location("streams", place))
streams.__spec__.loader.exec_module(streams)


def receive(listener, answers):
    """Takes connections, and whatever comes; answers each piece where it `answers`."""
    watch = selectors.DefaultSelector()
    watch.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in watch.select():
            if key.fileobj is listener:
                try:
                    link, _ = listener.accept()
                except OSError:
                    return
                watch.register(link, selectors.EVENT_READ)
                continue
            try:
                part = key.fileobj.recv(1 << 16)
            except OSError:
                part = b""
            if not part:
                watch.unregister(key.fileobj)
                key.fileobj.close()
            elif answers:
                key.fileobj.sendall(b"HTTP/1.1 204 No Content\r\n\r\n" * part.count(b"POST /"))


def post(port, path, body):
    link = http.client.HTTPConnection("127.0.0.1", port)
    link.request("POST", f"{path}?role=ops&id=O1", json.dumps(body))
    assert link.getresponse().status in (200, 201)
    link.close()


def measure(hub, answers, count, rate, seconds):
    """The p99 of each second, and the bytes that are resident at the end."""
    port = streams.free_port()
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    threading.Thread(target=receive, args=(listener, answers), daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "secret").write_text("whsec_" + base64.b64encode(os.urandom(32)).decode() + "\n")
        pathlib.Path(folder, "webhooks").write_text(
            f"[dead]\nurl = http://127.0.0.1:{listener.getsockname()[1]}/in\nsecret-file = {folder}/secret\n"
            "allow = 127.0.0.0/8\nchannel = trip:*\nconcurrency = 16\n")
        process = subprocess.Popen(
            [hub, "serve", "--port", str(port), "--dev-auth", "--data", f"{folder}/data", "--loops", "1",
             "--session-rate", "0", "--compression", "off", "--log-level", "error", "--webhooks", f"{folder}/webhooks"],
            stdout=subprocess.PIPE)
        try:
            process.stdout.readline()
            for trip in range(50):
                post(port, "/v1/trips", {"tripId": f"T{trip}"})
            driver = streams.upgrade(port, "driver", "D1")
            stats = streams.connect(
                port, "GET /v1/events?channel=stats&role=ops&id=O1 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"subscribed")
            links = [streams.subscriber(port, "sockets") for _ in range(count)]
            return follow(process, driver, stats, links, port, rate, seconds)
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()
            listener.close()


def follow(process, driver, stats, links, port, rate, seconds):
    watch = selectors.DefaultSelector()
    for link in links + [driver, stats]:
        link.setblocking(False)
        watch.register(link, selectors.EVENT_READ)
    over = threading.Event()

    def notify():
        number = 0
        while not over.wait(0.02):
            number += 1
            post(port, "/v1/notifications", {
                "channel": f"trip:T{number % 50}", "kind": "message", "title": str(number), "body": "-"})

    poster = threading.Thread(target=notify)
    poster.start()
    heard, sent, start = b"", 0, time.monotonic()
    while (passed := time.monotonic() - start) < seconds:
        while sent < passed * rate:
            sent += 1
            now = int(time.time() * 1000)
            driver.setblocking(True)
            driver.sendall(streams.frame({"type": "location_update", "messageId": f"m{sent}", "timestamp": now, "payload": {
                "latitude": 48 + sent * 1e-6, "longitude": 11.5, "accuracy": 5, "timestamp": now, "speed": 5.5}}))
            driver.setblocking(False)
        for key, _ in watch.select(max(0, sent / rate - passed)):
            part = key.fileobj.recv(1 << 16)
            assert part, "the hub has ended a connection"
            heard += part if key.fileobj is stats else b""
    over.set()
    poster.join()
    pages = int(open(f"/proc/{process.pid}/statm").read().split()[1])
    for link in links + [driver, stats]:
        link.close()
    lines = [line[6:] for line in heard.split(b"\n") if line.startswith(b"data: ") and line.endswith(b"}")]
    figures = [json.loads(line)["payload"].get("p99") for line in lines if b'"stats"' in line]
    return [figure for figure in figures[2:] if figure], pages * os.sysconf("SC_PAGE_SIZE")


def main():
    hub = sys.argv[1]
    count, rate, seconds, rounds = (
        int(text) for text in (sys.argv[2:] + ["100", "100", "12", "6"][len(sys.argv) - 2:]))
    ratios, bytes = [], []
    for number in range(rounds):
        found = {}
        for answers in (True, False) if number % 2 else (False, True):
            found[answers] = measure(hub, answers, count, rate, seconds)
        p99 = {answers: statistics.median(figures) for answers, (figures, _) in found.items()}
        ratios.append(p99[False] / p99[True])
        bytes.append(found[False][1] - found[True][1])
        print(f"p99 {p99[True] * 1e6:.0f} µs, with a dead receiver {p99[False] * 1e6:.0f} µs; "
              f"{bytes[-1] / 1e6:+.1f} MB", flush=True)
    ratio, more = statistics.median(ratios), statistics.median(bytes)
    print(f"a dead receiver changes the p99 by {ratio - 1:+.1%} ({min(ratios) - 1:+.1%} to {max(ratios) - 1:+.1%}) "
          f"and memory by {more / 1e6:+.2f} MB")
    return 1 if abs(ratio - 1) > 0.05 or more > 1e6 else 0


if __name__ == "__main__":
    sys.exit(main())
