"""Webhooks as a receiver of somebody else's sees them: PyPI's `standardwebhooks` (v1) and `cryptography` (v1a) verify them.

The signed requests of protocol/webhook-vectors.ndjson, which WebhooksTests make anew, byte for byte; and a hub that
delivers to a receiver which fails at random, while the hub is killed. EVENTS=100000 KILLS=20 for more than the few by
default. Run it with Tests/Foreign/run.sh.
"""

import base64
import collections
import datetime
import http.client
import http.server
import json
import os
import pathlib
import random
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request
from unittest import mock

import standardwebhooks
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from hub_process import HubProcess

VECTORS = pathlib.Path(__file__).parents[2] / "protocol" / "webhook-vectors.ndjson"
# RFC 8032 §7.1, test 1
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")


class At(datetime.datetime):
    """A clock that stands at the time of the requests, of which the library refuses what is older than five minutes."""

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(1764000000, tz)


class SignatureTests(unittest.TestCase):
    def setUp(self):
        patch = mock.patch("standardwebhooks.webhooks.datetime", At)
        patch.start()
        self.addCleanup(patch.stop)
        self.requests = []
        for line in VECTORS.read_text().splitlines():
            # The body's own bytes are what was signed.
            body = line[line.index(',"body":') + len(',"body":'):-1]
            self.requests.append((json.loads(line), body))
        self.assertGreaterEqual(len(self.requests), 2)

    @staticmethod
    def headers(request):
        return {f"webhook-{name}": request[name] for name in ("id", "timestamp", "signature")}

    def test_either_secret_verifies_during_a_rotation(self):
        for request, body in self.requests:
            for secret in request["secrets"]:
                payload = standardwebhooks.Webhook(secret).verify(body, self.headers(request))
                self.assertEqual(payload, request["body"])
                self.assertEqual(set(payload), {"type", "timestamp", "data"})

    def test_whatever_is_changed_is_refused(self):
        for request, body in self.requests:
            webhook = standardwebhooks.Webhook(request["secrets"][0])
            other = standardwebhooks.Webhook("whsec_" + base64.b64encode(b"x" * 32).decode())
            headers = self.headers(request)
            for hook, text, sent in [
                (webhook, body + " ", headers),
                (webhook, body, headers | {"webhook-id": "evt_e1_7_9"}),
                (webhook, body, headers | {"webhook-timestamp": "1764000001"}),
                (other, body, headers),
            ]:
                with self.assertRaises(standardwebhooks.WebhookVerificationError):
                    hook.verify(text, sent)

    def test_the_public_key_verifies(self):
        key = Ed25519PublicKey.from_public_bytes(PUBLIC)
        for request, body in self.requests:
            signatures = [s[4:] for s in request["signature"].split() if s.startswith("v1a,")]
            self.assertEqual(len(signatures), 1)
            signature = base64.b64decode(signatures[0], validate=True)
            signed = f'{request["id"]}.{request["timestamp"]}.{body}'.encode()
            key.verify(signature, signed)
            with self.assertRaises(InvalidSignature):
                key.verify(signature, signed + b" ")


class Receiver:
    """Takes webhooks, verifies each, and answers as the test sets."""

    def __init__(self, secret, answer=lambda event: 204, tls=None):
        self.webhook = standardwebhooks.Webhook(secret)
        self.answer = answer
        # (webhook-id, payload, answer) in the order in which they came, and the ids of those that were taken.
        self.requests = []
        self.taken = set()
        # Headers and bodies.
        self.signed = []
        self.changed = threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def finish(self):
                super().finish()
                self.connection.close()

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                payload = receiver.webhook.verify(body, {name.lower(): text for name, text in self.headers.items()})
                receiver.signed.append((self.headers, body))
                with receiver.changed:
                    status = receiver.answer(payload)
                    receiver.requests.append((self.headers["webhook-id"], payload, status))
                    if status == 204:
                        receiver.taken.add(self.headers["webhook-id"])
                    receiver.changed.notify_all()
                if status is None:
                    return receiver.closing.wait()
                self.send_response(status)
                if status == 302:
                    self.send_header("location", "/elsewhere")
                if status != 204:
                    self.send_header("content-length", "2")
                self.end_headers()
                if status != 204:
                    self.wfile.write(b"ok")

            def log_message(self, *words):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request, address):
                pass  # a hub that is killed cuts its connections

        self.closing = threading.Event()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, condition, seconds=120):
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self), seconds), "nothing more came"

    def close(self):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()


class DeliveryTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.secret = "whsec_" + base64.b64encode(os.urandom(32)).decode()
        pathlib.Path(self.folder, "secret").write_text(self.secret + "\n")

    def receiver(self, **settings):
        receiver = Receiver(self.secret, **settings)
        self.addCleanup(receiver.close)
        return receiver

    def configure(self, name, receiver, *lines, allow="127.0.0.0/8", host="http://127.0.0.1"):
        text = "\n".join([
            f"[{name}]", f"url = {host}:{receiver.port}/hook?a=b", f"secret-file = {self.folder}/secret",
            f"allow = {allow}", *(lines or ["channel = *"]), ""])
        path = pathlib.Path(self.folder, "webhooks")
        path.write_text(text)
        return str(path)

    def hub(self, file, trips=3):
        hub = HubProcess("--webhooks", file)
        self.addCleanup(hub.stop)
        for trip in range(trips):
            post(hub, "/v1/trips", {"tripId": f"T{trip}", "riderId": f"R{trip}"})
        return hub

    def test_what_a_receiver_gets(self):
        receiver = self.receiver()
        hub = self.hub(self.configure("orders", receiver, "channel = trip:T1*", "type = notification.message"))
        for number in range(3):
            notify(hub, "T2", number)
            notify(hub, "T1", number)
        receiver.wait(lambda r: len(r.taken) == 3)
        self.assertEqual([payload["data"]["title"] for _, payload, _ in receiver.requests], ["0", "1", "2"])
        payload = receiver.requests[0][1]
        self.assertEqual(payload["type"], "notification.message")
        self.assertEqual(payload["data"]["channel"], "trip:T1")
        wait_for(lambda: figure(hub, "webhook_deliveries_total", 'webhook="orders",outcome="delivered"') == 3)

    def test_over_tls_by_name_signed_by_a_key_too(self):
        certificate, key, signer = (os.path.join(self.folder, name) for name in ("tls.pem", "tls.key", "sign.key"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
            check=True, capture_output=True)
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", signer], check=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        trusted, strange = self.receiver(tls=context), self.receiver(tls=context)
        events = ["channel = trip:T1", "type = notification.message", f"sign-key = {signer}"]
        # ::1 as well, which localhost may be first: nobody listens there, and the next address is taken.
        settings = ["allow = ::1", *events]
        self.configure("orders", trusted, f"ca = {certificate}", *settings, host="https://localhost")
        file = pathlib.Path(self.folder, "webhooks")
        text = file.read_text()
        self.configure("strange", strange, *settings, host="https://localhost")
        file.write_text(text + file.read_text())
        hub = self.hub(str(file))
        for number in range(5):
            notify(hub, "T1", number)
        trusted.wait(lambda r: len(r.taken) == 5)
        wait_for(lambda: figure(hub, "webhook_deliveries_total", 'webhook="strange",outcome="failed"') > 0)
        self.assertEqual(strange.requests, [], "its certificate is not the system's")
        public = load_pem_private_key(pathlib.Path(signer).read_bytes(), None).public_key()
        for headers, body in trusted.signed:
            signature = next(s[4:] for s in headers["webhook-signature"].split() if s.startswith("v1a,"))
            signed = f'{headers["webhook-id"]}.{headers["webhook-timestamp"]}.{body}'.encode()
            public.verify(base64.b64decode(signature, validate=True), signed)

    def test_a_redirect_is_a_failure_and_an_event_comes_again_with_its_id(self):
        answers = iter([302, 500])
        receiver = self.receiver(answer=lambda event: next(answers, 204))
        hub = self.hub(self.configure("orders", receiver, "channel = trip:T1", "type = notification.message"))
        notify(hub, "T1", 1)
        # Tried again after some 5 s and some 30 s.
        receiver.wait(lambda r: len(r.requests) == 3)
        self.assertEqual(len({id for id, _, _ in receiver.requests}), 1)

    def test_an_address_inside_is_not_connected_to(self):
        receiver = self.receiver()
        hub = self.hub(self.configure("orders", receiver, allow="10.0.0.0/8"))
        notify(hub, "T1", 1)
        wait_for(lambda: figure(hub, "webhook_deliveries_total", 'webhook="orders",outcome="failed"') > 0)
        self.assertEqual(receiver.requests, [])

    def test_gone_disables_until_an_operator_enables_and_replay_sends_again(self):
        answers = iter([410])
        receiver = self.receiver(answer=lambda event: next(answers, 204))
        hub = self.hub(self.configure("orders", receiver, "channel = trip:T1", "type = notification.message"))
        notify(hub, "T1", 1)
        wait_for(lambda: figure(hub, "webhook_enabled", 'webhook="orders"') == 0)
        hub.kill()
        hub.start()
        notify(hub, "T1", 2)
        self.ask(hub, "enable", "orders")
        receiver.wait(lambda r: len(r.requests) == 3)
        ids = [id for id, _, _ in receiver.requests]
        self.assertEqual(ids[0], ids[1])
        self.ask(hub, "replay", "orders", ids[1])
        receiver.wait(lambda r: len(r.requests) == 5)
        self.assertEqual([id for id, _, _ in receiver.requests][3:], ids[1:])

    def test_gone_shown_and_enabled_over_http(self):
        answers = iter([410])
        receiver = self.receiver(answer=lambda event: next(answers, 204))
        hub = HubProcess("--webhook-allow", f"http://127.0.0.1:{receiver.port}/")
        self.addCleanup(hub.stop)
        post(hub, "/v1/trips", {"tripId": "T1", "riderId": "R1"})
        made = request(hub, "PUT", "/v1/webhooks/orders", {
            "url": f"http://127.0.0.1:{receiver.port}/hook", "channels": ["trip:T1"],
            "types": ["notification.message"]})[1]
        receiver.webhook = standardwebhooks.Webhook(made["secret"])
        notify(hub, "T1", 1)
        wait_for(lambda: request(hub, "GET", "/v1/webhooks/orders")[1]["state"] == "off")
        hub.kill()
        hub.start()
        wait_for(lambda: request(hub, "GET", "/v1/webhooks/orders")[1]["oldestUndelivered"] > 0)
        self.assertEqual(request(hub, "GET", "/v1/webhooks/orders")[1]["state"], "off")
        status, enabled = request(hub, "POST", "/v1/webhooks/orders/enable")
        self.assertEqual((status, enabled["state"]), (200, "on"))
        receiver.wait(lambda r: len(r.requests) == 2)
        self.assertEqual(len({id for id, _, _ in receiver.requests}), 1)
        self.assertEqual(request(hub, "POST", "/v1/webhooks/none/enable")[0], 404)

    def test_set_tested_rotated_and_replayed_over_http(self):
        receiver = self.receiver()
        definition = {"url": f"http://127.0.0.1:{receiver.port}/hook", "channels": ["trip:T1"],
                      "types": ["notification.message"]}
        hub = HubProcess("--webhook-allow", f"http://127.0.0.1:{receiver.port}/")
        self.addCleanup(hub.stop)
        post(hub, "/v1/trips", {"tripId": "T1", "riderId": "R1"})
        elsewhere = definition | {"url": "http://127.0.0.1/hook"}
        self.assertEqual(request(hub, "PUT", "/v1/webhooks/orders", elsewhere)[0], 403, "another port")
        status, made = request(hub, "PUT", "/v1/webhooks/orders", definition)
        self.assertEqual((status, made["state"], made["source"]), (201, "on", "http"))
        receiver.webhook = standardwebhooks.Webhook(made["secret"])
        status, tested = request(hub, "POST", "/v1/webhooks/orders/test")
        self.assertEqual((status, tested["delivered"], tested["status"]), (200, True, 204))
        self.assertEqual(receiver.requests[0][1]["type"], "test")
        for number in range(3):
            notify(hub, "T1", number)
        receiver.wait(lambda r: len(r.taken) == 4)
        rotated = request(hub, "POST", "/v1/webhooks/orders/secret")[1]["secret"]
        hub.kill()
        hub.start()
        notify(hub, "T1", 3)
        receiver.wait(lambda r: len(r.taken) == 5)
        receiver.webhook = standardwebhooks.Webhook(rotated)
        # The last one before the kill may have come twice.
        seen = [id for id, _, _ in receiver.requests]
        ids = list(dict.fromkeys(seen))
        status, _ = request(hub, "POST", "/v1/webhooks/orders/replay", {"ids": [ids[3]]})
        self.assertEqual(status, 200)
        receiver.wait(lambda r: len(r.requests) >= len(seen) + 2)
        self.assertEqual([id for id, _, _ in receiver.requests][len(seen):], ids[3:5])
        self.assertEqual(request(hub, "GET", "/v1/webhooks/orders/dead"), (200, {"dead": []}))
        self.assertEqual(request(hub, "DELETE", "/v1/webhooks/orders")[0], 204)
        self.assertEqual(request(hub, "GET", "/v1/webhooks"), (200, {"webhooks": []}))
        self.assertEqual(request(hub, "GET", "/v1/webhooks", who="rider&id=R1")[0], 403)

    def test_a_reload_turns_webhooks_on_where_none_were(self):
        receiver = self.receiver()
        settings = pathlib.Path(self.folder, "settings")
        settings.write_text("")
        hub = HubProcess("--config", str(settings))
        self.addCleanup(hub.stop)
        post(hub, "/v1/trips", {"tripId": "T1", "riderId": "R1"})
        notify(hub, "T1", 0)
        file = self.configure("orders", receiver, "channel = trip:T1", "type = notification.message")
        settings.write_text(f"webhooks = {file}\n")
        hub.process.send_signal(signal.SIGHUP)
        wait_for(lambda: len(request(hub, "GET", "/v1/webhooks")[1]["webhooks"]) == 1)
        notify(hub, "T1", 1)
        receiver.wait(lambda r: len(r.taken) == 1)
        self.assertEqual(receiver.requests[0][1]["data"]["title"], "1")
        settings.write_text("")
        hub.process.send_signal(signal.SIGHUP)
        wait_for(lambda: request(hub, "GET", "/v1/webhooks")[1]["webhooks"] == [])

    def ask(self, hub, *words):
        subprocess.run(
            [os.environ["LOCATIONHUB"], "webhooks", *words, "--data", f"{hub.folder.name}/data"], check=True,
            stdout=subprocess.DEVNULL)
        hub.process.send_signal(signal.SIGHUP)

    def test_all_events_come_in_order_though_a_fifth_fails_and_the_hub_is_killed(self):
        events, kills = int(os.environ.get("EVENTS", 600)), int(os.environ.get("KILLS", 4))
        trips, threads = min(1000, events // 10), 8
        chance, failed = random.Random(7), set()

        def answer(payload):
            # No event fails twice: what fails comes again after some 5 s, and then only after 30 s.
            title = payload["data"]["title"]
            if title in failed or chance.random() >= 0.2:
                return 204
            failed.add(title)
            return 500

        receiver = self.receiver(answer=answer)
        hub = self.hub(self.configure(
            "orders", receiver, "channel = trip:*", "type = notification.message", "concurrency = 16"), trips)
        expected, posted = collections.defaultdict(list), [0] * threads

        def run(thread):
            for number in range(thread, events, threads):
                trip = f"T{number * 7919 % (trips // threads) * threads + thread}"
                notify(hub, trip, number)
                expected[f"trip:{trip}"].append(str(number))
                posted[thread] += 1

        posting = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
        for thread in posting:
            thread.start()
        for part in range(1, kills + 1):
            wait_for(lambda: sum(posted) >= part * events // (kills + 1), seconds=600)
            hub.kill()
            hub.start()
        for thread in posting:
            thread.join()
        receiver.wait(lambda r: len(r.taken) == events, seconds=900)
        arrived, seen = collections.defaultdict(list), set()
        for id, payload, status in receiver.requests:
            if status == 204 and id not in seen:
                seen.add(id)
                arrived[payload["data"]["channel"]].append(payload["data"]["title"])
        self.assertEqual(arrived, expected)
        twice = sum(status == 204 for _, _, status in receiver.requests) - events
        print(f"{events} events, {len(receiver.requests)} requests, {kills} kills, {twice} delivered twice", flush=True)
        self.assertLessEqual(twice, 16 * kills, "at most what was under way")


connections = threading.local()


def post(hub, path, body, who="ops&id=O1"):
    """One request over a connection that is kept as long as the hub lives, made again where the hub is killed."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if getattr(connections, "hub", None) is not hub.process:
                if hasattr(connections, "http"):
                    connections.http.close()
                connections.hub, connections.http = hub.process, http.client.HTTPConnection("127.0.0.1", hub.port)
            connections.http.request("POST", f"{path}?role={who}", json.dumps(body))
            answer = connections.http.getresponse()
            text = answer.read()
        except (http.client.HTTPException, OSError):
            connections.hub = None
            time.sleep(0.05)
            continue
        assert answer.status in (200, 201), (answer.status, text)
        return
    raise AssertionError("the hub does not answer")


def request(hub, method, path, body=None, who="ops&id=O1"):
    """The status and the body, read, of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=30)
    try:
        connection.request(method, f"{path}?role={who}", None if body is None else json.dumps(body))
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


def notify(hub, trip, number):
    post(hub, "/v1/notifications", {
        "channel": f"trip:{trip}", "kind": "message", "title": str(number), "body": "-", "messageId": f"m{number}"})


def figure(hub, name, labels):
    for line in urllib.request.urlopen(hub.url("/metrics")).read().decode().splitlines():
        if line.startswith(f"locationhub_{name}{{{labels}}} "):
            return float(line.split()[-1])
    return -1


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.1)


if __name__ == "__main__":
    unittest.main()
