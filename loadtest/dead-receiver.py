#!/usr/bin/env python3
"""What a webhook's receiver that takes requests and answers none costs all others: the p99 of deliveries, and memory.

    loadtest/dead-receiver.py .build/release/locationhub [BLOCKS] [SECONDS A PHASE] [DRIVERS]

Drivers send 50 fixes a second each (20 drivers: 1,000 fixes), which two subscribers each follow, and 50 events a second
come for a webhook. One hub has it all: its receiver answers at once (A) or never (B), in blocks of phases A B B A, so that
neither another process nor a drift of the machine is measured. The hub has core 0; load, events and receiver are processes
on core 1. Before each phase what the last one left undelivered is delivered.

A phase's p99 is the hub's own, from its channel `stats`: from reading a fix to the write, of each second with some
thousand deliveries, and of those the median. The spread is that between the two equal phases of a block. Exit code 1
where a dead receiver makes the p99 over 5 % longer, or takes over 1 MB.
"""

import base64
import contextlib
import http.client
import importlib.util
import json
import multiprocessing
import os
import pathlib
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time

place = pathlib.Path(__file__).with_name("event-streams.py")
streams = importlib.util.module_from_spec(importlib.util.spec_from_file_location("streams", place))
streams.__spec__.loader.exec_module(streams)

TRIPS, EVENTS, FIXES = 50, 50, 50  # trips; events a second; fixes a second of a driver
SETTLING = 3  # seconds of a phase that do not count


def pin(core):
    if os.cpu_count() > 1:
        os.sched_setaffinity(0, {core})


def receive(listener, answers, arrived=None):
    """Takes connections and requests, and answers while `answers`; else the requests stay open, to the switch back."""
    pin(1)
    watch, waiting = selectors.DefaultSelector(), set()
    watch.register(listener, selectors.EVENT_READ)
    while True:
        ready = watch.select(1)
        if answers.value:
            for link in waiting:
                watch.unregister(link)
                link.close()
            ready = [(key, mask) for key, mask in ready if key.fileobj not in waiting]
            waiting.clear()
        for key, _ in ready:
            link = key.fileobj
            if link is listener:
                watch.register(listener.accept()[0], selectors.EVENT_READ)
                continue
            try:
                part = link.recv(1 << 16)
            except OSError:
                part = b""
            if not part:
                watch.unregister(link)
                waiting.discard(link)
                link.close()
            elif answers.value:
                with contextlib.suppress(OSError):
                    link.sendall(b"HTTP/1.1 204 No Content\r\n\r\n" * part.count(b"POST /"))
                if arrived is not None:
                    arrived(part)
            else:
                waiting.add(link)


class Poster:
    """Asks a hub over one connection."""

    def __init__(self, port):
        self.link = http.client.HTTPConnection("127.0.0.1", port, timeout=streams.PATIENCE)

    def ask(self, method, path, body=None):
        self.link.request(method, f"{path}{'&' if '?' in path else '?'}role=ops&id=O1", json.dumps(body) if body else None)
        answer = self.link.getresponse()
        text = answer.read()
        assert answer.status in (200, 201), (path, answer.status, text)
        return json.loads(text) if text else None

    def notify(self, number, title):
        self.ask("POST", "/v1/notifications", {
            "channel": f"trip:T{number % TRIPS}", "kind": "message", "title": title, "body": "-"})


def notify(port, rate):
    """Posts so many events a second, whose titles are when each is due (ns of CLOCK_MONOTONIC): what the hub delays by
    answering late counts."""
    pin(1)
    poster, start, number = Poster(port), time.monotonic(), 0
    while True:
        due = start + number / rate
        time.sleep(max(0, due - time.monotonic()))
        poster.notify(number, str(int(due * 1e9)))
        number += 1


@contextlib.contextmanager
def started(target, *words):
    process = multiprocessing.Process(target=target, args=words, daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


@contextlib.contextmanager
def serving(hub, address, *more):
    """A hub on core 0 with a webhook `dead` to this address; gives its process and port."""
    port = streams.free_port()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "secret").write_text("whsec_" + base64.b64encode(os.urandom(32)).decode() + "\n")
        pathlib.Path(folder, "webhooks").write_text(
            f"[dead]\nurl = http://127.0.0.1:{address[1]}/in\nsecret-file = {folder}/secret\n"
            "allow = 127.0.0.0/8\nchannel = trip:*\nconcurrency = 16\n")
        process = subprocess.Popen(
            [hub, "serve", "--port", str(port), "--dev-auth", "--data", f"{folder}/data", "--loops", "1",
             "--session-rate", "0", "--compression", "off", "--log-level", "error", "--webhooks", f"{folder}/webhooks",
             *more], stdout=subprocess.PIPE, preexec_fn=lambda: pin(0))
        try:
            streams.await_line(process)
            poster = Poster(port)
            for trip in range(TRIPS):
                poster.ask("POST", "/v1/trips", {"tripId": f"T{trip}"})
            yield process, port
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


class Load:
    """Drivers that move, subscribers that follow them, and what the hub says of itself."""

    def __init__(self, port, drivers):
        self.drivers = [streams.upgrade(port, "driver", f"D{number}") for number in range(drivers)]
        self.stats = streams.connect(
            port, "GET /v1/events?channel=stats&role=ops&id=O1 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"subscribed")
        self.watch, self.sent, self.heard, self.links = selectors.DefaultSelector(), 0, b"", []
        for number in range(drivers):
            for _ in range(2):
                link = streams.upgrade(port, "ops", "O1")
                link.sendall(streams.frame({"type": "subscribe", "payload": {"channel": f"driver:D{number}"},
                                            "timestamp": 0, "messageId": "s"}))
                self.watch.register(link, selectors.EVENT_READ)
                self.links.append(link)
        for link in self.drivers + [self.stats]:
            self.watch.register(link, selectors.EVENT_READ)

    def run(self, seconds):
        """The p99 of each second."""
        rate, start, self.heard, first, pongs = FIXES * len(self.drivers), time.monotonic(), b"", self.sent, 0
        while (passed := time.monotonic() - start) < seconds:
            if passed >= pongs:  # instead of an answer to each ping (RFC 6455 §5.5.3)
                pongs += 5
                for link in self.links + self.drivers:
                    link.sendall(b"\x8a\x80\0\0\0\0")
            while self.sent - first < passed * rate:
                self.sent += 1
                now = int(time.time() * 1000)
                self.drivers[self.sent % len(self.drivers)].sendall(streams.frame({
                    "type": "location_update", "messageId": f"m{self.sent}", "timestamp": now, "payload": {
                        "latitude": 48 + self.sent * 1e-7, "longitude": 11.5, "accuracy": 5, "timestamp": now, "speed": 5.5}}))
            for key, _ in self.watch.select(max(0, (self.sent - first) / rate - passed)):
                part = key.fileobj.recv(1 << 16)
                assert part, "the hub has ended a connection"
                if key.fileobj is self.stats:
                    self.heard += part
        lines = [line[6:] for line in self.heard.split(b"\n") if line.startswith(b"data: ") and line.endswith(b"}")]
        figures = [json.loads(line)["payload"].get("p99") for line in lines if b'"stats"' in line]
        return [figure for figure in figures[SETTLING:] if figure]


def deliver(poster, load):
    """Has everything delivered that waits, under load."""
    poster.ask("POST", "/v1/webhooks/dead/enable")
    for _ in range(60):
        load.run(1)
        webhook = poster.ask("GET", "/v1/webhooks/dead")
        if webhook["oldestUndelivered"] < 1 and webhook["state"] == "on":
            return
    raise AssertionError(f"the webhook does not catch up: {webhook}")


def main():
    hub = sys.argv[1]
    blocks, seconds, drivers = (int(text) for text in (sys.argv[2:] + ["3", "25", "20"][len(sys.argv) - 2:]))
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    answers = multiprocessing.Value("b", True)
    ratios, equals, memory = [], [], []
    with started(receive, listener, answers), serving(hub, listener.getsockname()) as (process, port):
        pin(1)
        with started(notify, port, EVENTS):
            load, poster = Load(port, drivers), Poster(port)
            load.run(5)
            for _ in range(blocks):
                p99, bytes = {True: [], False: []}, {True: [], False: []}
                for phase in (True, False, False, True):
                    answers.value = True
                    deliver(poster, load)
                    answers.value = phase
                    p99[phase].append(statistics.median(load.run(seconds)))
                    pages = int(open(f"/proc/{process.pid}/statm").read().split()[1])
                    bytes[phase].append(pages * os.sysconf("SC_PAGE_SIZE"))
                ratios.append(statistics.mean(p99[False]) / statistics.mean(p99[True]))
                equals += [pair[1] / pair[0] for pair in p99.values()]
                memory.append(statistics.mean(bytes[False]) - statistics.mean(bytes[True]))
                print(*(f"{'answers' if phase else 'dead'}: p99 {' and '.join(f'{x * 1e6:.0f}' for x in p99[phase])} µs;"
                        for phase in p99), f"{memory[-1] / 1e6:+.2f} MB", flush=True)
    ratio, more = statistics.median(ratios), statistics.median(memory)
    print(f"a dead receiver changes the p99 by {ratio - 1:+.1%} ({min(ratios) - 1:+.1%} to {max(ratios) - 1:+.1%}) and memory "
          f"by {more / 1e6:+.2f} MB; equal phases differ by {statistics.median(abs(x - 1) for x in equals):.1%}, "
          f"{max(abs(x - 1) for x in equals):.1%} at most")
    return 1 if ratio > 1.05 or more > 1e6 else 0


if __name__ == "__main__":
    sys.exit(main())
