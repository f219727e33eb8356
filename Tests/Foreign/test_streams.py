"""Streams as the servers of somebody else have them: Debian's nats-server and redis-server, and a collector over HTTP.

Events are posted while the hub is killed and the server ended and started again, KILLS times each (3 by default): none
may be missing, none there twice, and those of a trip in order. Run it with Tests/Foreign/run.sh, which installs the
servers; where they are not, their tests are skipped.
"""

import asyncio
import base64
import collections
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import nats
import redis

from hub_process import HubProcess, free_port
from test_webhooks import connections, figure, notify, post, wait_for

KILLS = int(os.environ.get("KILLS", 3))
PASSWORD = "s3cret"


class ServerProcess:
    """A server that keeps its port and its folder over its death."""

    def __init__(self, test, program, *more):
        if not shutil.which(program):
            test.skipTest(f"there is no {program}: apt-get install {program}")
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.folder, self.port, self.program, self.more = folder.name, free_port(), program, more
        self.start()
        test.addCleanup(self.end)

    def start(self):
        self.process = subprocess.Popen(
            [self.program, *self.options(), *self.more], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.answers)

    def answers(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def end(self):
        self.process.terminate()
        self.process.wait(20)

    def restart(self):
        self.end()
        self.start()


class NATSServer(ServerProcess):
    trusted = None  # the file of the certificate that its clients trust; without one there is no TLS

    def options(self):
        return ["-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", self.folder, "--user", "hub", "--pass", PASSWORD]

    def run(self, body):
        """What `body` gives, which is called with a connection's JetStream."""
        async def run():
            tls = ssl.create_default_context(cafile=self.trusted) if self.trusted else None
            client = await nats.connect(f"nats://localhost:{self.port}", user="hub", password=PASSWORD, tls=tls)
            try:
                return await body(client.jetstream())
            finally:
                await client.close()
        return asyncio.run(run())

    def create(self, subject="locationhub.>", **settings):
        self.run(lambda js: js.add_stream(name="HUB", subjects=[subject], **settings))

    def widen(self, subject):
        self.run(lambda js: js.update_stream(name="HUB", subjects=[subject]))

    def count(self):
        async def count(js):
            return (await js.stream_info("HUB")).state.messages
        return self.run(count)

    def events(self):
        """Subject, id and payload of all that is stored, in order."""
        async def read(js):
            subscription = await js.pull_subscribe("locationhub.>", stream="HUB")
            messages, count = [], (await js.stream_info("HUB")).state.messages
            while len(messages) < count:
                for message in await subscription.fetch(min(500, count - len(messages)), timeout=60):
                    messages.append(message)
                    await message.ack()
            return [
                (m.subject, (m.headers or {}).get("Nats-Msg-Id"), json.loads(m.data)) for m in messages]
        return self.run(read)


class RedisServer(ServerProcess):
    def options(self):
        return ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", self.folder, "--save", "",
                "--appendonly", "yes", "--requirepass", PASSWORD]

    def answers(self):
        with contextlib.suppress(redis.exceptions.RedisError):
            return self.client().ping()
        return False

    def client(self):
        return redis.Redis(port=self.port, password=PASSWORD, decode_responses=True)

    def count(self):
        return self.client().xlen("locationhub:events")

    def events(self):
        return [
            (f["source"], f["id"], json.loads(f["data"])) for _, f in self.client().xrange("locationhub:events")]


class Collector:
    """Takes batches over HTTP whose signature is right, and answers as the test sets."""

    def __init__(self, test, answer=lambda: 204):
        self.secret, self.answer, self.batches, self.positions = os.urandom(32), answer, [], []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                id = self.headers["webhook-id"]
                signed = f'{id}.{self.headers["webhook-timestamp"]}.'.encode() + body
                signature = base64.b64encode(hmac.new(collector.secret, signed, hashlib.sha256).digest()).decode()
                status = collector.answer() if self.headers["webhook-signature"] == f"v1,{signature}" else 401
                if status == 204:
                    kept = collector.positions if id.startswith("positions_") else collector.batches
                    kept.append([json.loads(line) for line in body.splitlines()])
                self.send_response(status)
                if status != 204:
                    self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *words):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, address):
                pass  # a hub that is killed cuts its connections

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        test.addCleanup(self.server.server_close)
        test.addCleanup(self.server.shutdown)


class StreamTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "password").write_text(PASSWORD + "\n")

    def hub(self, *lines, trips=20):
        text = "\n".join(["[out]", *lines, "channel = trip:*", "type = notification.message", ""])
        (self.folder / "webhooks").write_text(text)
        hub = HubProcess("--webhooks", str(self.folder / "webhooks"))
        self.addCleanup(hub.stop)
        for trip in range(trips):
            post(hub, "/v1/trips", {"tripId": f"T{trip}", "riderId": f"R{trip}"})
        return hub

    def nats(self, server, *lines):
        return self.hub(
            f"stream = nats://127.0.0.1:{server.port}", "user = hub", f"password-file = {self.folder}/password", *lines)

    def redis(self, server, *lines):
        return self.hub(f"stream = redis://127.0.0.1:{server.port}", f"password-file = {self.folder}/password", *lines)

    def batches(self, collector, *lines):
        secret = "whsec_" + base64.b64encode(collector.secret).decode()
        (self.folder / "secret").write_text(secret + "\n")
        return self.hub(
            f"stream = http://127.0.0.1:{collector.server.server_address[1]}/in", f"secret-file = {self.folder}/secret",
            "allow = 127.0.0.0/8", *lines)

    def stir(self, hub, restart, kills):
        """Posts events while the hub is killed and the server started again. Returns each trip's, in order."""
        expected, posted, stop, threads = collections.defaultdict(list), [0] * 4, threading.Event(), 4

        def run(thread):
            while not stop.is_set():
                trip, number = f"T{posted[thread] % 5 * threads + thread}", posted[thread] * threads + thread
                notify(hub, trip, number)
                expected[trip].append(str(number))
                posted[thread] += 1
            connections.http.close()

        posting = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
        for thread in posting:
            thread.start()
        try:
            for _ in range(kills):
                for disturb in (lambda: (hub.kill(), hub.start()), restart):
                    before = sum(posted)
                    wait_for(lambda: sum(posted) >= before + 20)
                    disturb()
        finally:
            stop.set()
            for thread in posting:
                thread.join()
        return expected

    def check(self, events, expected, restarts=f" and {KILLS} restarts of the server"):
        arrived = collections.defaultdict(list)
        for _, _, payload in events:
            arrived[payload["data"]["channel"].removeprefix("trip:")].append(payload["data"]["title"])
        self.assertEqual(arrived, expected)
        count = sum(len(titles) for titles in expected.values())
        self.assertEqual(len({id for _, id, _ in events}), count)
        print(f"{count} events, {KILLS} kill -9 of the hub{restarts}", flush=True)

    def test_nats_has_each_event_once_and_in_order(self):
        server = NATSServer(self, "nats-server")
        server.create()
        hub = self.nats(server)
        expected = self.stir(hub, server.restart, KILLS)
        count = sum(len(titles) for titles in expected.values())
        wait_for(lambda: server.count() >= count)
        events = server.events()
        self.check(events, expected)
        subjects = {(subject, payload["data"]["channel"]) for subject, _, payload in events}
        self.assertEqual(
            subjects, {(f"locationhub.trip.{trip}.notification.message", f"trip:{trip}") for trip in expected})

    def test_redis_has_each_event_once_and_in_order(self):
        server = RedisServer(self, "redis-server")
        hub = self.redis(server)
        expected = self.stir(hub, server.restart, KILLS)
        count = sum(len(titles) for titles in expected.values())
        wait_for(lambda: server.count() >= count)
        self.check(server.events(), expected)

    def certificate(self):
        """Files of a certificate for localhost, which nobody trusts, and of its key."""
        certificate, key = (str(self.folder / name) for name in ("tls.pem", "tls.key"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
            check=True, capture_output=True)
        return certificate, key

    def check_trust(self, server, certificate, *lines):
        """Nothing arrives before the certificate is trusted."""
        hub = self.hub(*lines, f"password-file = {self.folder}/password")
        notify(hub, "T1", 1)
        wait_for(lambda: figure(hub, "stream_connection_failures_total", 'stream="out"') > 1)
        self.assertEqual((server.count(), figure(hub, "stream_up", 'stream="out"')), (0, 0))
        settings = self.folder / "webhooks"
        settings.write_text(settings.read_text() + f"ca = {certificate}\n")
        hub.process.send_signal(signal.SIGHUP)
        wait_for(lambda: server.count() == 1)
        return hub

    def test_redis_over_tls_by_name_and_only_with_a_certificate_that_is_trusted(self):
        certificate, key = self.certificate()
        port = free_port()
        server = RedisServer(
            self, "redis-server", "--tls-port", str(port), "--tls-cert-file", certificate, "--tls-key-file", key,
            "--tls-auth-clients", "no")
        self.check_trust(server, certificate, f"stream = rediss://localhost:{port}")

    def test_nats_over_tls_by_name_and_only_with_a_certificate_that_is_trusted(self):
        certificate, key = self.certificate()
        server = NATSServer(self, "nats-server", "--tls", "--tlscert", certificate, "--tlskey", key)
        server.trusted = certificate
        server.create()
        hub = self.check_trust(server, certificate, f"stream = tls://localhost:{server.port}", "user = hub")
        server.restart()
        notify(hub, "T1", 2)
        wait_for(lambda: server.count() == 2)

    def test_a_collector_gets_signed_batches_in_order(self):
        collector = Collector(self)
        hub = self.batches(collector)
        expected = self.stir(hub, lambda: None, KILLS)
        count = sum(len(titles) for titles in expected.values())
        wait_for(lambda: len({event["id"] for batch in collector.batches for event in batch}) >= count)
        # At least once: a receiver drops the ids that it has seen.
        events = {event["id"]: ("", event["id"], event) for batch in collector.batches for event in batch}
        self.check(events.values(), expected, restarts="")
        self.assertLess(len(collector.batches), count / 2, "several events are one batch")

    def test_what_is_given_up_is_listed_and_the_next_event_goes_out(self):
        answers = iter([500, 500])
        collector = Collector(self, lambda: next(answers, 204))
        hub = self.batches(collector, "give-up-after = 1")
        notify(hub, "T1", 1)
        wait_for(lambda: figure(hub, "stream_dead_total", 'stream="out"') == 1)  # after some 5 s
        notify(hub, "T1", 2)
        wait_for(lambda: collector.batches)
        self.assertEqual([event["data"]["title"] for event in collector.batches[0]], ["2"])
        self.assertEqual(figure(hub, "stream_events_total", 'stream="out",outcome="refused"'), 2)
        letters = self.ask(hub, "dead", "out").split()
        self.assertEqual(letters[2:], ["trip.T1", "status", "500"])
        wait_for(lambda: self.ask(hub, "list").startswith("out on at "))
        self.assertTrue(self.ask(hub, "list").endswith(", 0 channels behind, 1 dead letters\n"))

    def ask(self, hub, *words):
        return subprocess.run(
            [os.environ["LOCATIONHUB"], "webhooks", *words, "--data", f"{hub.folder.name}/data"], check=True, text=True,
            stdout=subprocess.PIPE).stdout

    def test_without_a_stream_in_the_server_events_wait_and_sighup_tries_at_once(self):
        server = NATSServer(self, "nats-server")
        hub = self.nats(server)
        notify(hub, "T1", 1)
        wait_for(lambda: figure(hub, "stream_events_total", 'stream="out",outcome="refused"') > 0)
        self.assertEqual(figure(hub, "stream_up", 'stream="out"'), 0)
        server.create()
        hub.process.send_signal(signal.SIGHUP)
        wait_for(lambda: server.count() == 1)
        wait_for(lambda: figure(hub, "stream_up", 'stream="out"') == 1)

    def test_what_is_stored_behind_a_refused_event_is_stored_once_however_long_that_lasts(self):
        server = NATSServer(self, "nats-server")
        server.end()
        hub = self.nats(server)
        for trip, number in [("T2", 1), ("T1", 2)]:
            notify(hub, trip, number)
        server.start()  # so that both are sent together: behind a refused event nothing else is
        refusals = lambda: figure(hub, "stream_events_total", 'stream="out",outcome="refused"')
        wait_for(lambda: refusals() >= 2)
        # Before there is a stream: what is stored just before a kill -9 may be stored again.
        hub.kill()
        server.create("locationhub.trip.T1.>", duplicate_window=0.1)
        hub.start()
        for number in range(3):  # T2 has no stream; T1 is stored the first time
            before = refusals() if number else 0
            if number:
                hub.process.send_signal(signal.SIGHUP)
            wait_for(lambda: refusals() > before and server.count() >= 1)
            stored = time.monotonic()
            wait_for(lambda: time.monotonic() > stored + 1)  # the server forgets the ids that it has
        self.assertEqual(server.count(), 1)
        server.widen("locationhub.>")
        hub.process.send_signal(signal.SIGHUP)
        wait_for(lambda: server.count() >= 2)
        notify(hub, "T1", 3)
        wait_for(lambda: server.count() >= 3)
        self.assertEqual([payload["data"]["title"] for _, _, payload in server.events()], ["2", "1", "3"])

    def drive(self, hub, arrived):
        """Sends positions of a driver until one has arrived."""
        end = time.monotonic() + 120
        while not arrived():
            assert time.monotonic() < end, "no position came"
            now = time.time()
            fix = {
                "latitude": 52.5 + now % 100 / 1e5, "longitude": 13.4, "accuracy": 5, "timestamp": int(now * 1000)}
            post(hub, "/v1/locations", fix, "driver&id=D.1")
            time.sleep(0.2)
        wait_for(lambda: figure(hub, "stream_positions_total", 'stream="out",outcome="sent"') > 0)

    def test_positions_go_to_nats(self):
        server = NATSServer(self, "nats-server")
        server.create()
        self.drive(self.nats(server, "positions = on"), lambda: server.count() > 0)
        subject, id, message = server.events()[0]
        self.assertEqual((subject, id), ("locationhub.driver.D%2E1.position", None))
        self.assertEqual((message["type"], message["payload"]["driverId"]), ("driver_location", "D.1"))

    def test_positions_go_to_redis_and_to_a_collector(self):
        collector = Collector(self)
        self.drive(self.batches(collector, "positions = on"), lambda: collector.positions)
        self.assertEqual(collector.positions[0][0]["payload"]["driverId"], "D.1")
        server = RedisServer(self, "redis-server")
        hub = self.redis(server, "positions = on")
        self.drive(hub, lambda: server.client().xlen("locationhub:positions"))
        entry = server.client().xrange("locationhub:positions")[0][1]
        self.assertEqual((entry["source"], json.loads(entry["data"])["type"]), ("driver.D%2E1", "driver_location"))


if __name__ == "__main__":
    unittest.main()
