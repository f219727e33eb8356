"""A foreign client: Python's `websockets` as driver and rider against a running hub process.

What is tested here is that somebody else's reading of RFC 6455 and of protocol/ agrees with ours.
Run it with Tests/Foreign/run.sh, which builds the environment that it needs.
"""

import asyncio
import csv
import io
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
import xml.etree.ElementTree

import websockets

import binary_form

FIRST_FIX = 1_700_000_000_000


def fix(step):
    """A fix on the way north at 10 m/s."""
    return {
        "latitude": 37.0 + step * 10 / 111_195, "longitude": -122.0, "accuracy": 5, "speed": 10, "heading": 0,
        "timestamp": FIRST_FIX + step * 1000,
    }


class Client:
    """One WebSocket with the protocol's envelope around what is sent."""

    def __init__(self, socket):
        self.socket = socket
        self.number = 0

    async def send(self, kind, **payload):
        self.number += 1
        message_id = f"py{self.number}"
        await self.socket.send(
            json.dumps({
                "type": kind, "payload": payload, "timestamp": int(time.time() * 1000), "messageId": message_id,
            }))
        return message_id

    async def receive(self, kind):
        """The payload of the next message, which must be of this type. Advice on sampling comes when the hub likes."""
        message = json.loads(await asyncio.wait_for(self.socket.recv(), 20))
        while message["type"] == "sampling" and kind != "sampling":
            message = json.loads(await asyncio.wait_for(self.socket.recv(), 20))
        assert message["type"] == kind, f"waited for {kind}, got {message}"
        return message["payload"]


class BinaryPage(unittest.TestCase):
    """protocol/binary.md, implemented a second time, against the vectors beside it."""

    def vectors(self, direction):
        with open(os.path.join(os.path.dirname(__file__), "../../protocol/binary-vectors.ndjson")) as lines:
            return [vector for vector in map(json.loads, lines) if vector["direction"] == direction]

    def test_positions_are_read_as_the_vectors_say(self):
        reader, positions = binary_form.Reader(), 0
        for vector in self.vectors("server"):
            kind, payload = reader.read(bytes.fromhex(vector["hex"]))
            self.assertEqual(kind, vector["message"]["type"] if "message" in vector else "names")
            if kind == "driver_location":
                self.assertEqual(payload, vector["message"]["payload"])
                positions += 1
            if kind == "subscribed":
                self.assertEqual(reader.last_channel, vector["message"]["payload"]["channel"])
        self.assertGreaterEqual(positions, 4)

    def test_fixes_are_written_as_the_vectors_say(self):
        writer, fixes = binary_form.Writer(), 0
        for vector in self.vectors("client"):
            message = vector["message"]
            if message["type"] == "location_update" and message["messageId"] == "4711":
                writer.trip = "trip-7"  # by the fix before it
                written = writer.location_update(message["payload"], 4711, message["timestamp"])
                self.assertEqual(written.hex(), vector["hex"])
                fixes += 1
        self.assertEqual(fixes, 1)


class ForeignClient(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.hub = subprocess.Popen(
            [os.environ["LOCATIONHUB"], "serve", "--port", "0", "--dev-auth", "--loops", "2", "--session-rate", "0",
             "--no-journal", "--log-level", "error"],
            stdout=subprocess.PIPE, text=True)
        line = self.hub.stdout.readline()
        self.address = line.split("ws://")[1].split("/")[0]

    def tearDown(self):
        if self.hub.poll() is None:
            self.hub.send_signal(signal.SIGTERM)
        self.assertEqual(self.hub.wait(60), 0, "SIGTERM ends the hub in order")
        self.hub.stdout.close()

    def connect(self, role, identity, **options):
        return websockets.connect(f"ws://{self.address}/v1/ws?role={role}&id={identity}", **options)

    async def test_a_binary_driver_and_a_binary_rider_by_the_page_alone(self):
        options = {"subprotocols": ["locationhub.v1.binary"], "compression": None}
        async with self.connect("driver", "driver-12", **options) as driver, self.connect(
            "rider", "r1", **options) as rider, self.connect("rider", "r2") as beside:
            self.assertEqual(rider.subprotocol, "locationhub.v1.binary")
            reader, writer, json_rider = binary_form.Reader(), binary_form.Writer(), Client(beside)
            self.assertEqual(reader.read(await rider.recv())[0], "connected")
            await json_rider.receive("connected")
            await rider.send(binary_form.subscribe("trip:trip-7", 1, int(time.time() * 1000)))
            self.assertEqual(reader.read(await asyncio.wait_for(rider.recv(), 20))[0], "subscribed")
            await json_rider.send("subscribe", channel="trip:trip-7")
            await json_rider.receive("subscribed")
            start = int(time.time() * 1000) - 60_000
            sizes = []
            for step in range(20):
                payload = {**fix(step), "tripId": "trip-7", "timestamp": start + step * 1000}
                update = writer.location_update(payload, step, int(time.time() * 1000))
                self.assertLessEqual(len(update), 30 if step > 0 else 40)
                await driver.send(update)
                kind = None
                while kind != "driver_location":
                    message = await asyncio.wait_for(rider.recv(), 20)
                    kind, position = reader.read(message)
                sizes.append(len(message))
                as_json = None
                while as_json is None or as_json["type"] != "driver_location":
                    as_json = json.loads(await asyncio.wait_for(beside.recv(), 20))
                self.assertEqual(position, as_json["payload"])
            self.assertLessEqual(sizes[-1], 25, sizes)
            await rider.send("{}")
            with self.assertRaises(websockets.ConnectionClosed) as closed:
                while True:
                    await asyncio.wait_for(rider.recv(), 20)
            self.assertEqual(closed.exception.rcvd.code, 1003)

    def get(self, target):
        with urllib.request.urlopen(f"http://{self.address}{target}", timeout=20) as answer:
            return answer.read().decode()

    async def test_a_driver_s_fixes_reach_the_rider_in_order(self):
        async with self.connect("driver", "d1") as a, self.connect("rider", "r1") as b:
            driver, rider = Client(a), Client(b)
            self.assertEqual((await driver.receive("connected"))["id"], "d1")
            self.assertEqual((await rider.receive("connected"))["role"], "rider")
            asked = await rider.send("subscribe", channel="trip:T1")
            self.assertEqual((await rider.receive("subscribed"))["replyTo"], asked)
            for step in range(50):
                await driver.send("location_update", tripId="T1", **fix(step))
            self.assertEqual((await rider.receive("trip_update"))["status"], "accepted")
            for step in range(50):
                position = await rider.receive("driver_location")
                self.assertEqual(position["timestamp"], FIRST_FIX + step * 1000)
                self.assertAlmostEqual(position["longitude"], -122.0, places=4)
            moved = await driver.send("trip_status", tripId="T1", status="driver_en_route", timestamp=FIRST_FIX)
            self.assertEqual((await driver.receive("ack"))["replyTo"], moved)
            self.assertEqual((await rider.receive("trip_update"))["sequence"], 2)
            shown = json.loads(await asyncio.to_thread(self.get, "/v1/drivers/d1?role=ops&id=o1"))
            self.assertEqual(shown["status"], "on_trip")

    async def test_fragments_pings_and_large_messages_are_understood(self):
        async with self.connect("rider", "r1", max_size=1 << 20) as socket:
            rider = Client(socket)
            await rider.receive("connected")
            text = "größer als ASCII €" * 100
            whole = json.dumps({
                "type": "ping", "payload": {"text": text}, "timestamp": 1, "messageId": "large",
                "unread": "größer als ASCII €" * 5000})
            await socket.send(whole[place:place + 1000] for place in range(0, len(whole), 1000))
            self.assertEqual((await rider.receive("pong"))["text"], text)
            await asyncio.wait_for(await socket.ping(b"still there?"), 20)

    async def test_compression_is_agreed_on_and_both_sides_understand_each_other(self):
        for compression in ("deflate", None):
            async with self.connect("rider", "r1", compression=compression, max_size=1 << 20) as socket:
                agreed = socket.response.headers.get("Sec-WebSocket-Extensions")
                if compression is None:
                    self.assertIsNone(agreed)
                else:
                    # Perhaps with a window's size: whether one is offered depends on the library's version.
                    self.assertTrue(agreed.startswith(
                        "permessage-deflate; server_no_context_takeover; client_no_context_takeover"), agreed)
                rider = Client(socket)
                await rider.receive("connected")
                for text in ["größer als ASCII € " * 100, "", "once more " * 100, "once more " * 100]:
                    await rider.send("ping", text=text)
                    self.assertEqual((await rider.receive("pong"))["text"], text)

    async def test_the_hub_s_close_codes_arrive(self):
        async with self.connect("driver", "d1") as first:
            await Client(first).receive("connected")
            async with self.connect("driver", "d1") as second:
                await Client(second).receive("connected")
                with self.assertRaises(websockets.ConnectionClosed) as closed:
                    await asyncio.wait_for(first.recv(), 20)
                self.assertEqual(closed.exception.rcvd.code, 4409)
                self.hub.send_signal(signal.SIGTERM)
                with self.assertRaises(websockets.ConnectionClosed) as closed:
                    await asyncio.wait_for(second.recv(), 20)
                self.assertEqual(closed.exception.rcvd.code, 1001)

    async def test_a_bad_credential_is_refused_with_401_and_a_json_body(self):
        with self.assertRaises(websockets.InvalidStatus) as refused:
            async with self.connect("emperor", "e1"):
                pass
        response = refused.exception.response
        self.assertEqual(response.status_code, 401)
        self.assertEqual(json.loads(response.body)["error"]["code"], "unauthorized")

    async def test_the_subprotocol_is_agreed_on(self):
        async with self.connect("rider", "r1", subprotocols=["locationhub.v1.json"]) as socket:
            self.assertEqual(socket.subprotocol, "locationhub.v1.json")

    async def test_a_posted_fix_is_accepted(self):
        request = urllib.request.Request(
            f"http://{self.address}/v1/locations?role=driver&id=d1", data=json.dumps(fix(0)).encode(), method="POST")
        with await asyncio.to_thread(urllib.request.urlopen, request, timeout=20) as answer:
            self.assertEqual(json.loads(answer.read())["accepted"], 1)
        with self.assertRaises(urllib.error.HTTPError) as missing:
            await asyncio.to_thread(self.get, "/v1/nothing?role=ops&id=o1")
        self.assertEqual(missing.exception.code, 404)
        missing.exception.close()


@unittest.skipUnless(shutil.which("openssl"), "needs the openssl program to make a certificate")
class ForeignTracks(unittest.TestCase):
    """A trip's track, in each form read by Python's own parser of it."""

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.hub = subprocess.Popen(
            [os.environ["LOCATIONHUB"], "serve", "--port", "0", "--dev-auth", "--loops", "2", "--data", self.directory,
             "--log-level", "error"],
            stdout=subprocess.PIPE, text=True)
        self.address = self.hub.stdout.readline().split("ws://")[1].split("/")[0]

    def tearDown(self):
        self.hub.send_signal(signal.SIGTERM)
        self.assertEqual(self.hub.wait(60), 0)
        self.hub.stdout.close()
        shutil.rmtree(self.directory)

    def fetch(self, path, body=None):
        url = f"http://{self.address}/v1/{path}"
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(url, data)) as answer:
            return answer.status, answer.headers, answer.read().decode()

    def test_a_track_is_gpx_geojson_and_csv(self):
        status, headers, _ = self.fetch("trips?role=ops&id=o", {"tripId": "T1", "driverId": "d1"})
        self.assertEqual((status, headers["Location"]), (201, "/v1/trips/T1"))
        fixes = [dict(fix(step), altitude=12.5) for step in range(50)]
        self.fetch("locations?role=driver&id=d1", {"tripId": "T1", "locations": fixes})

        _, headers, text = self.fetch("trips/T1/track.gpx?role=ops&id=o&source=raw")
        self.assertEqual(headers.get_content_type(), "application/gpx+xml")
        space = "{http://www.topografix.com/GPX/1/1}"
        gpx = xml.etree.ElementTree.fromstring(text)
        self.assertEqual((gpx.tag, gpx.get("version")), (space + "gpx", "1.1"))
        points = gpx.findall(f"{space}trk/{space}trkseg/{space}trkpt")
        self.assertEqual(len(points), 50)
        for point, sent in zip(points, fixes):
            self.assertAlmostEqual(float(point.get("lat")), sent["latitude"], 6)
            self.assertEqual([child.tag for child in point], [space + "ele", space + "time"])
            self.assertEqual(float(point[0].text), 12.5)

        _, _, text = self.fetch("trips/T1/track.geojson?role=ops&id=o")
        feature = json.loads(text)
        self.assertEqual(feature["geometry"]["type"], "LineString")
        self.assertEqual(len(feature["geometry"]["coordinates"]), 50)
        self.assertEqual(feature["properties"]["times"], [sent["timestamp"] for sent in fixes])

        _, _, text = self.fetch("trips/T1/track.csv?role=ops&id=o")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        self.assertEqual([int(row["t_ms"]) for row in rows], [sent["timestamp"] for sent in fixes])


class ForeignTLS(unittest.IsolatedAsyncioTestCase):
    """Python's `ssl`, which is somebody else's reading of RFC 8446 above OpenSSL's own record layer."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.certificate, key = (os.path.join(self.folder.name, name) for name in ("hub.pem", "hub.key"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out",
             self.certificate], check=True, capture_output=True)
        self.hub = subprocess.Popen(
            [os.environ["LOCATIONHUB"], "serve", "--port", "0", "--dev-auth", "--loops", "2", "--session-rate", "0",
             "--no-journal", "--log-level", "error", "--tls-cert", self.certificate, "--tls-key", key],
            stdout=subprocess.PIPE, text=True)
        self.port = int(self.hub.stdout.readline().split("https://")[1].split(" ")[0].split(":")[1])

    def tearDown(self):
        self.hub.send_signal(signal.SIGTERM)
        self.assertEqual(self.hub.wait(60), 0, "SIGTERM ends the hub in order")
        self.hub.stdout.close()
        self.folder.cleanup()

    def connect(self, role, identity, version=None):
        context = ssl.create_default_context(cafile=self.certificate)
        context.set_alpn_protocols(["http/1.1"])
        if version:
            context.minimum_version = context.maximum_version = version
        return websockets.connect(
            f"wss://localhost:{self.port}/v1/ws?role={role}&id={identity}", ssl=context, compression=None)

    async def test_fixes_come_through_tls_1_2_and_1_3_also_when_they_are_many(self):
        versions = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
        for number, version in enumerate(versions):
            async with self.connect("driver", f"d{number}", version) as a, self.connect("ops", "o1", version) as b:
                driver, ops = Client(a), Client(b)
                await driver.receive("connected")
                await ops.receive("connected")
                await ops.send("subscribe", channel=f"driver:d{number}")
                await ops.receive("subscribed")
                for step in range(100):
                    await driver.send("location_update", **fix(step))
                    self.assertEqual((await ops.receive("driver_location"))["timestamp"], FIRST_FIX + step * 1000)

    async def test_the_close_code_comes_before_the_goodbye(self):
        async with self.connect("rider", "r1") as socket:
            await Client(socket).receive("connected")
            self.hub.send_signal(signal.SIGTERM)
            with self.assertRaises(websockets.ConnectionClosed) as closed:
                await asyncio.wait_for(socket.recv(), 20)
            self.assertEqual(closed.exception.rcvd.code, 1001)

    async def test_who_does_not_know_the_certificate_goes_no_further(self):
        with self.assertRaises(ssl.SSLCertVerificationError):
            async with websockets.connect(f"wss://localhost:{self.port}/v1/ws", ssl=ssl.create_default_context()):
                pass


class ForeignCertificates(unittest.TestCase):
    """Certificates by name, and back ends that show their own. OpenSSL's tool is the authority."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = lambda name: os.path.join(self.folder.name, name)
        self.authority("ca")
        self.authority("other-ca")
        for name, host in (("a", "a.example"), ("b", "*.b.example")):
            self.issue("ca", name, f"DNS:{host}", "serverAuth")
        self.options = ["--tls-cert", self.file("a.pem"), "--tls-key", self.file("a.key"),
                        "--tls-cert", self.file("b.pem"), "--tls-key", self.file("b.key")]
        self.hub = None

    def tearDown(self):
        if self.hub:
            self.hub.send_signal(signal.SIGTERM)
            self.assertEqual(self.hub.wait(60), 0, "SIGTERM ends the hub in order")
            self.hub.stdout.close()
        self.folder.cleanup()

    def openssl(self, *words, **options):
        return subprocess.run(["openssl", *words], check=True, capture_output=True, **options).stdout

    def authority(self, name):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                     "-subj", f"/CN={name}", "-keyout", self.file(f"{name}.key"), "-out", self.file(f"{name}.pem"))

    def issue(self, authority, name, names, usage):
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-keyout", self.file(f"{name}.key"), "-out", self.file(f"{name}.csr"))
        with open(self.file("extensions"), "w") as extensions:
            extensions.write(f"subjectAltName={names}\nextendedKeyUsage={usage}\n")
        self.openssl("x509", "-req", "-in", self.file(f"{name}.csr"), "-CA", self.file(f"{authority}.pem"), "-CAkey",
                     self.file(f"{authority}.key"), "-CAcreateserial", "-days", "2", "-extfile",
                     self.file("extensions"), "-out", self.file(f"{name}.pem"))

    def serve(self, *options):
        self.hub = subprocess.Popen(
            [os.environ["LOCATIONHUB"], "serve", "--port", "0", "--no-journal", "--log-level", "error", *self.options,
             *options], stdout=subprocess.PIPE, text=True)
        self.port = int(self.hub.stdout.readline().split("https://")[1].split(" ")[0].split(":")[1])

    def ask(self, name=None, server="a.example", path="/v1/drivers", headers=(), version=None):
        """The status of one request; with the certificate of this name."""
        context = ssl.create_default_context(cafile=self.file("ca.pem"))
        if name:
            context.load_cert_chain(self.file(f"{name}.pem"), self.file(f"{name}.key"))
        if version:
            context.minimum_version = context.maximum_version = version
        with socket.create_connection(("127.0.0.1", self.port), 20) as plain:
            with context.wrap_socket(plain, server_hostname=server) as secure:
                fields = "".join(f"{field}\r\n" for field in headers)
                secure.sendall(f"GET {path} HTTP/1.1\r\nHost: {server}\r\n{fields}\r\n".encode())
                return int(secure.recv(4096).split(b" ")[1])

    def test_each_host_has_its_certificate_and_none_is_for_others(self):
        self.serve("--dev-auth")
        for server in ("a.example", "x.b.example"):
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                self.assertEqual(self.ask(server=server, path="/healthz", version=version), 200)
        for server in ("b.example", "c.example"):
            with self.assertRaises(ssl.SSLCertVerificationError):
                self.ask(server=server, path="/healthz")

    def test_a_back_end_needs_no_token(self):
        self.issue("ca", "dispatch", "DNS:dispatch.example,URI:spiffe://acme/dispatch", "clientAuth")
        self.issue("ca", "nobody", "DNS:nobody.example", "clientAuth")
        self.issue("other-ca", "forged", "DNS:dispatch.example", "clientAuth")
        self.serve("--client-ca", self.file("ca.pem"), "--client-cert", "URI:spiffe://acme/dispatch = ops, dispatch")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            self.assertEqual(self.ask("dispatch", version=version), 200)
            self.assertEqual(self.ask("dispatch", server="x.b.example", version=version), 200)
        self.assertEqual(self.ask("nobody"), 401, "without a match")
        self.assertEqual(self.ask(), 401, "without a certificate")
        self.assertEqual(self.ask(path="/healthz"), 200, "what needs no credential needs no certificate")
        self.assertEqual(self.ask("dispatch", headers=["X-Forwarded-For: 203.0.113.9"]), 401)
        with self.assertRaises((ssl.SSLError, ConnectionError, IndexError)):
            self.ask("forged")

    def test_the_status_of_a_certificate_is_stapled(self):
        with open(self.file("index.txt"), "w") as index:
            serial = self.openssl("x509", "-in", self.file("a.pem"), "-noout", "-serial").decode().strip().split("=")[1]
            index.write(f"V\t301231000000Z\t\t{serial}\tunknown\t/CN=a\n")
        self.openssl("ocsp", "-issuer", self.file("ca.pem"), "-cert", self.file("a.pem"), "-reqout",
                     self.file("question"))
        self.openssl("ocsp", "-index", self.file("index.txt"), "-CA", self.file("ca.pem"), "-rsigner",
                     self.file("ca.pem"), "-rkey", self.file("ca.key"), "-reqin", self.file("question"), "-respout",
                     self.file("a.pem.ocsp"), "-ndays", "1")
        self.serve("--dev-auth")
        for server, words in (("a.example", b"Cert Status: good"), ("x.b.example", b"no response sent")):
            said = self.openssl("s_client", "-connect", f"127.0.0.1:{self.port}", "-servername", server, "-status",
                                "-CAfile", self.file("ca.pem"), "-verify_return_error", input=b"")
            self.assertIn(words, said)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
