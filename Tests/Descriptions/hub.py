"""A real hub with all that answers may need: a journal, a key to sign links with, streets, and an image."""
import http.client
import json
import pathlib
import tempfile

from hub_process import HubProcess

ROLES = {"/v1/locations": "driver", "/v1/owntracks": "driver", "/v1/osmand": "driver", "/v1/overland": "driver"}
IDS = {"driver": "driver-12", "rider": "rider-3", "ops": "ops-1"}


def role_for(path):
    """Whose credential opens a path: a driver's what takes fixes, and that of ops all else."""
    return ROLES.get(path, "ops")


class Hub(HubProcess):
    def __init__(self):
        self.files = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.files.name)
        (folder / "secret").write_text("a secret of thirty-two bytes and more\n")
        (folder / "a_nodes.csv").write_text("id,lat,lon\n1,48.13,11.57\n2,48.14,11.58\n")
        (folder / "a_edges.csv").write_text("from,to,class\n1,2,primary\n")
        (folder / "tiles/1/1").mkdir(parents=True)
        (folder / "tiles/1/1/1.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        super().__init__(
            "--loops", "2", "--token-sign-key", str(folder / "secret"), "--streets", str(folder / "a_edges.csv"),
            "--tiles", str(folder / "tiles"), "--attribution", "© contributors",
            "--webhook-allow", "http://127.0.0.1:9/")
        self.address = f"127.0.0.1:{self.port}"

    def stop(self):
        super().stop()
        self.files.cleanup()

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
