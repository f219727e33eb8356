"""A real hub with all that answers may need: a journal, a key to sign links with, and streets."""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import tempfile

ROLES = {"/v1/locations": "driver", "/v1/owntracks": "driver", "/v1/osmand": "driver", "/v1/overland": "driver"}
IDS = {"driver": "driver-12", "rider": "rider-3", "ops": "ops-1"}


def role_for(path):
    """Whose credential opens a path: a driver's what takes fixes, and that of ops all else."""
    return ROLES.get(path, "ops")


class Hub:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        (folder / "secret").write_text("a secret of thirty-two bytes and more\n")
        (folder / "a_nodes.csv").write_text("id,lat,lon\n1,48.13,11.57\n2,48.14,11.58\n")
        (folder / "a_edges.csv").write_text("from,to,class\n1,2,primary\n")
        self.process = subprocess.Popen(
            [os.environ["LOCATIONHUB"], "serve", "--port", "0", "--dev-auth", "--session-rate", "0", "--loops", "2",
             "--log-level", "error", "--data", str(folder / "data"), "--token-sign-key", str(folder / "secret"),
             "--streets", str(folder / "a_edges.csv"), "--tiles", "https://tiles.example/{z}/{x}/{y}.png",
             "--attribution", "© contributors"], stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split("ws://")[1].split("/")[0]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        self.process.stdout.close()
        self.folder.cleanup()
        assert status == 0, "SIGTERM ends the hub in order"

    def stream(self, target):
        """The messages of an event stream, as they come; each within 20 s of the one before."""
        connection = http.client.HTTPConnection(self.address, timeout=20)
        try:
            connection.request("GET", target)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            for line in answer.fp:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        finally:
            connection.close()

    def ask(self, method, target, body=None, fields=None):
        """The answer: status, type, body. Of a stream, what comes first of it."""
        connection = http.client.HTTPConnection(self.address, timeout=20)
        try:
            connection.request(method, target, body, fields or {})
            answer = connection.getresponse()
            kind = answer.headers.get("Content-Type")
            text = answer.fp.readline() if kind == "text/event-stream" else answer.read()
            return answer.status, kind, text
        finally:
            connection.close()
