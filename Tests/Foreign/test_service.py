"""The hub under a service manager: what it is handed over, its notices, and a restart without one refused newcomer.

The manager here is what systemd is to a hub: it opens the sockets, names them, and listens on a datagram socket.
"""
import json
import os
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

HUB = os.environ["LOCATIONHUB"]


class Manager:
    """Opens the sockets once, and starts hubs with them."""

    def __init__(self, watchdog=None):
        self.folder = tempfile.mkdtemp()
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind(f"{self.folder}/notify")
        self.sockets = []
        for _ in range(2):
            listener = socket.socket()
            listener.bind(("127.0.0.1", 0))
            listener.listen(4096)
            self.sockets.append(listener)
        self.port, self.admin_port = (listener.getsockname()[1] for listener in self.sockets)
        self.watchdog = watchdog

    def start(self, *options):
        numbers = [listener.fileno() for listener in self.sockets]

        def hand_over():
            copies = [os.dup(number) for number in numbers]
            for place, copy in enumerate(copies):
                os.dup2(copy, 3 + place, inheritable=True)

        environment = dict(os.environ, NOTIFY_SOCKET=f"{self.folder}/notify", LISTEN_FDNAMES="http:admin")
        if self.watchdog:
            environment["WATCHDOG_USEC"] = str(int(self.watchdog * 1e6))
        # The variable names the process that the sockets are for: the shell's number stays the hub's.
        command = 'export LISTEN_FDS=2 LISTEN_PID=$$; exec "$0" "$@"'
        return subprocess.Popen(
            ["/bin/sh", "-c", command, HUB, "serve", "--dev-auth", "--data", f"{self.folder}/data", *options],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4),
            preexec_fn=hand_over)

    def next(self, wanted, seconds=60):
        """Reads notices until one has this line."""
        end = time.monotonic() + seconds
        while select.select([self.notices], [], [], max(0, end - time.monotonic()))[0]:
            lines = self.notices.recv(4096).decode().split("\n")
            if wanted in lines:
                return lines
        raise AssertionError(f"{wanted} was not reported")

    def get(self, path, port=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{port or self.port}{path}", timeout=30) as answer:
            return answer.status

    def close(self):
        for listener in self.sockets:
            listener.close()
        self.notices.close()
        shutil.rmtree(self.folder)


class ServiceManagers(unittest.TestCase):
    def manager(self, **options):
        manager = Manager(**options)
        self.addCleanup(manager.close)
        return manager

    def end(self, hub):
        hub.terminate()
        self.assertEqual(hub.wait(60), 0)

    def test_ready_reloading_alive_and_stopping_are_told(self):
        manager = self.manager(watchdog=2)
        hub = manager.start()
        self.addCleanup(hub.kill)
        self.assertIn(f"STATUS=listening on 127.0.0.1:{manager.port}", manager.next("READY=1"))
        self.assertEqual(manager.get("/readyz", manager.admin_port), 200)
        # The socket of that name is an admin port like one of the settings.
        self.assertEqual(manager.get("/metrics", manager.admin_port), 200)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            manager.get("/metrics")
        self.assertEqual(refused.exception.code, 401)
        manager.next("WATCHDOG=1")
        manager.next("WATCHDOG=1")
        hub.send_signal(1)
        self.assertTrue(any(line.startswith("MONOTONIC_USEC=") for line in manager.next("RELOADING=1")))
        manager.next("READY=1")
        hub.terminate()
        manager.next("STOPPING=1")
        self.assertEqual(hub.wait(60), 0)

    def test_a_stopped_hub_gives_no_sign_of_life(self):
        manager = self.manager(watchdog=2)
        hub = manager.start()
        self.addCleanup(hub.kill)
        manager.next("WATCHDOG=1")
        hub.send_signal(19)
        os.waitpid(hub.pid, os.WUNTRACED)  # all of its threads have stopped
        while select.select([manager.notices], [], [], 0)[0]:
            manager.notices.recv(4096)
        with self.assertRaises(AssertionError):
            manager.next("WATCHDOG=1", seconds=3)
        hub.send_signal(18)
        manager.next("WATCHDOG=1")
        self.end(hub)

    def test_a_socket_that_is_none_is_refused(self):
        manager = self.manager()
        manager.sockets[0].close()
        manager.sockets[0] = socket.socket()
        hub = manager.start()
        self.assertEqual(hub.wait(60), 1)

    def test_restarts_refuse_no_newcomer(self):
        for loops in ("1", "2"):
            with self.subTest(loops=loops):
                self.restart(loops)

    def restart(self, loops):
        manager = self.manager()
        hub = manager.start("--loops", loops, "--session-rate", "0")
        self.addCleanup(hub.kill)
        manager.next("READY=1")
        self.fill(manager, 2000)
        stop, refused, answered = threading.Event(), [], []

        def knock():
            while not stop.is_set():
                try:
                    with socket.create_connection(("127.0.0.1", manager.port), timeout=60) as newcomer:
                        newcomer.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                        answer = newcomer.recv(100)
                        (answered if answer.startswith(b"HTTP/1.1 200") else refused).append(answer)
                except OSError as error:
                    refused.append(error)
                stop.wait(0.002)

        knocking = threading.Thread(target=knock)
        knocking.start()
        try:
            for _ in range(3):
                self.end(hub)
                hub = manager.start("--loops", loops)
                self.addCleanup(hub.kill)
                manager.next("READY=1")
                count, end = len(answered), time.monotonic() + 60
                while len(answered) < count + 20 and time.monotonic() < end:
                    stop.wait(0.01)
        finally:
            stop.set()
            knocking.join()
        self.assertEqual(refused, [])
        self.assertGreaterEqual(len(answered), 60)
        self.end(hub)

    def fill(self, manager, trips):
        """So that a start has something to read."""
        for first in range(0, trips, 500):
            fixes = [{"latitude": 52.5, "longitude": 13.4, "timestamp": int(time.time() * 1000) + number,
                      "accuracy": 5} for number in range(50)]
            for driver in range(first, first + 500, 50):
                body = json.dumps({"locations": fixes, "batchId": f"b{driver}"}).encode()
                request = urllib.request.Request(
                    f"http://127.0.0.1:{manager.port}/v1/locations?role=driver&id=d{driver}", body,
                    {"Content-Type": "application/json"})
                with urllib.request.urlopen(request, timeout=30) as answer:
                    self.assertEqual(answer.status, 200)


if __name__ == "__main__":
    unittest.main()
