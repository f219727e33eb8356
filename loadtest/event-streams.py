#!/usr/bin/env python3
"""What a delivery costs the hub over a WebSocket, and what it costs over an event stream: CPU time of the hub's process.

    loadtest/event-streams.py .build/release/locationhub [SUBSCRIBERS] [FIXES A SECOND] [SECONDS] [ROUNDS]

A driver moves, and so many subscribers follow its channel: all over sockets, all over streams, or none, interleaved.
What none costs is taken off. Exit code 1 where a stream's delivery costs over 1.1 times a socket's.
"""

import json
import os
import select
import selectors
import socket
import statistics
import subprocess
import sys
import time


PATIENCE = 60  # seconds until a hub listens, or says anything at all


def await_line(process):
    """Returns when a hub has said where it listens."""
    assert select.select([process.stdout], [], [], PATIENCE)[0], f"the hub does not listen after {PATIENCE} s"
    assert process.stdout.readline(), "the hub has ended before it listened"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def frame(message):
    """A masked text frame whose mask is zero, so that the payload stands as it is."""
    text = json.dumps(message).encode()
    length = bytes([0x80 | len(text)]) if len(text) < 126 else bytes([0xFE]) + len(text).to_bytes(2, "big")
    return b"\x81" + length + b"\0\0\0\0" + text


def connect(port, request, until):
    link = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    link.sendall(request.encode())
    heard = b""
    while until not in heard:
        part = link.recv(65536)
        assert part, heard
        heard += part
    return link


def upgrade(port, role, name):
    return connect(
        port, f"GET /v1/ws?role={role}&id={name} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        b'"connected"')


def subscriber(port, kind):
    if kind == "streams":
        return connect(
            port, "GET /v1/events?channel=driver:D1&role=ops&id=O1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b'"subscribed"')
    link = upgrade(port, "ops", "O1")
    link.sendall(frame({"type": "subscribe", "payload": {"channel": "driver:D1"}, "timestamp": 0, "messageId": "s"}))
    return link


def cpu(process):
    fields = open(f"/proc/{process.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(hub, kind, count, rate, seconds):
    """Seconds of CPU and deliveries while so many follow a driver who moves."""
    port = free_port()
    process = subprocess.Popen(
        [hub, "serve", "--port", str(port), "--dev-auth", "--no-journal", "--loops", "1", "--session-rate", "0",
         "--compression", "off", "--log-level", "error"], stdout=subprocess.PIPE)
    try:
        await_line(process)
        driver = upgrade(port, "driver", "D1")
        links = [subscriber(port, kind) for _ in range(0 if kind == "none" else count)]
        watch = selectors.DefaultSelector()
        for link in links + [driver]:
            link.setblocking(False)
            watch.register(link, selectors.EVENT_READ)
        deliveries, sent, start, before = 0, 0, time.monotonic(), cpu(process)
        while (passed := time.monotonic() - start) < seconds:
            while sent < passed * rate:
                sent += 1
                now = int(time.time() * 1000)
                driver.settimeout(PATIENCE)
                driver.sendall(frame({"type": "location_update", "messageId": f"m{sent}", "timestamp": now, "payload": {
                    "latitude": 48 + sent * 1e-6, "longitude": 11.5, "accuracy": 5, "timestamp": now, "speed": 5.5}}))
                driver.setblocking(False)
            for key, _ in watch.select(max(0, sent / rate - passed)):
                part = key.fileobj.recv(1 << 16)
                assert part, "the hub has ended a connection"
                deliveries += part.count(b'"driver_location"')
        spent = cpu(process) - before
        for link in links + [driver]:
            link.close()
        return spent, deliveries
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def main():
    hub = sys.argv[1]
    count, rate, seconds, rounds = (
        int(text) for text in (sys.argv[2:] + ["200", "50", "8", "5"][len(sys.argv) - 2:]))
    costs = {"sockets": [], "streams": []}
    for _ in range(rounds):
        idle, _ = measure(hub, "none", count, rate, seconds)
        for kind in costs:
            spent, deliveries = measure(hub, kind, count, rate, seconds)
            costs[kind].append((spent - idle) / deliveries * 1e6)
            print(f"{kind}: {deliveries} deliveries, {costs[kind][-1]:.2f} µs each", flush=True)
    ratios = [stream / plain for stream, plain in zip(costs["streams"], costs["sockets"])]
    middle = statistics.median(ratios)
    print(f"a stream's delivery costs {middle:.2f} times a socket's ({min(ratios):.2f}-{max(ratios):.2f})")
    return 1 if middle > 1.1 else 0


if __name__ == "__main__":
    sys.exit(main())
