"""A hub as a process, which keeps its port and its folder over its death."""

import os
import random
import signal
import socket
import subprocess
import tempfile


given = set()


def free_port():
    """A port that is free now, and that the system gives to nobody else: it takes those from 32,768 on
    (`net.ipv4.ip_local_port_range`). So it is still free when a hub that was killed starts again. None is given twice,
    and PORTS=FROM-TO has each of those who choose at the same time take from a part of its own."""
    first, end = map(int, os.environ.get("PORTS", "20000-32000").split("-"))
    while True:
        port = random.randrange(first, end)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in given:
            given.add(port)
            return port


class HubProcess:
    def __init__(self, *options, journal=True):
        self.folder = tempfile.TemporaryDirectory()
        self.port = free_port()
        self.options = [*options, *(["--data", f"{self.folder.name}/data"] if journal else ["--no-journal"])]
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [os.environ["LOCATIONHUB"], "serve", "--port", str(self.port), "--dev-auth", "--session-rate", "0",
             "--log-level", "error", *self.options],
            stdout=subprocess.PIPE, text=True)
        assert "ws://" in self.process.stdout.readline()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self.process.stdout.close()
        self.folder.cleanup()
        assert status == 0, "SIGTERM ends the hub in order"

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"
