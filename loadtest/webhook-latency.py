#!/usr/bin/env python3
"""How long an event takes from a back end's request to a webhook's receiver, at 200 events a second on loopback.

    loadtest/webhook-latency.py .build/release/locationhub [EVENTS A SECOND] [SECONDS]

From when a `POST /v1/notifications` is due to the signed request's arrival, so with the hub's journal on the disk. The hub has
core 0, the back ends and the receiver core 1. An event that has not come counts as one that took for ever, but for 1 % of
all, which the last moment and reads that end within an event may cost. Exit code 1 where the p99 is over 50 ms.
"""

import contextlib
import importlib.util
import math
import multiprocessing
import pathlib
import re
import socket
import sys
import time

place = pathlib.Path(__file__).with_name("dead-receiver.py")
dead = importlib.util.module_from_spec(importlib.util.spec_from_file_location("dead", place))
dead.__spec__.loader.exec_module(dead)

POSTERS = 4


def collect(listener, answers, found):
    """Sends the seconds that each event took, as they come."""
    def arrived(part):
        now = time.monotonic_ns()
        for title in re.findall(rb'"title":"(\d+)"', part):
            found.send((now - int(title)) / 1e9)
    dead.receive(listener, answers, arrived)


def in_order(times, due):
    """The seconds of the events that came, and infinity for those of `due` that did not: else the p99 is of the others."""
    return sorted(times) + [math.inf] * max(0, math.ceil(due * 0.99) - len(times))


def main():
    hub = sys.argv[1]
    rate, seconds = (int(text) for text in (sys.argv[2:] + ["200", "30"][len(sys.argv) - 2:]))
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    found, sink = multiprocessing.Pipe(duplex=False)
    answers = multiprocessing.Value("b", True)
    with dead.started(collect, listener, answers, sink), dead.serving(hub, listener.getsockname()) as (_, port):
        dead.pin(1)
        times = []
        with contextlib.ExitStack() as stack:
            for _ in range(POSTERS):
                stack.enter_context(dead.started(dead.notify, port, rate / POSTERS))
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0:
                if found.poll(left):
                    times.append(found.recv())
        while found.poll(1):
            times.append(found.recv())
    came, times = len(times), in_order(times, rate * seconds)
    p50, p99 = (times[int(len(times) * share)] for share in (0.5, 0.99))
    print(f"{came} events at {came / seconds:.0f}/s: p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms, "
          f"at most {times[-1] * 1e3:.1f} ms")
    return 1 if p99 > 0.05 else 0


if __name__ == "__main__":
    sys.exit(main())
