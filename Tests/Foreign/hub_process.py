"""A hub as a process, which keeps its port and its folder over its death."""

import os
import signal
import socket
import subprocess
import tempfile


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


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
        status = self.process.wait(20)
        self.process.stdout.close()
        self.folder.cleanup()
        assert status == 0, "SIGTERM ends the hub in order"

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"
