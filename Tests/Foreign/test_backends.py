"""What phone apps send, as they send it, and what a back end asks, over HTTP with Python's own client: the hub's code has
no part in it.

Run it with Tests/Foreign/run.sh, which builds the environment that it needs.
"""

import base64
import hashlib
import http.client
import json
import os
import tempfile
import time
import unittest
import urllib.parse

from hub_process import HubProcess

OPS = "role=ops&id=backend"
KEY = "8mz4w2q9x7c5v3b1n0k6j4h2g8f5d3s1"
SECRET = b"a secret of thirty-two bytes and more"


class Backends(unittest.TestCase):
    def setUp(self):
        self.files = tempfile.TemporaryDirectory()
        self.addCleanup(self.files.cleanup)
        secret, devices = (os.path.join(self.files.name, name) for name in ("secret", "devices"))
        with open(secret, "wb") as file:
            file.write(SECRET)
        with open(devices, "w") as file:
            file.write(f"d1 {hashlib.sha256(KEY.encode()).hexdigest()}\n")
        # A rate that was given counts on loopback, too.
        self.hub = HubProcess(
            "--token-sign-key", secret, "--device-keys", devices, "--request-rate", "1000", "--request-burst", "2000")
        self.addCleanup(self.hub.stop)

    def ask(self, method, target, body=None, **headers):
        """Status, fields and what the answer says."""
        connection = http.client.HTTPConnection("127.0.0.1", self.hub.port, timeout=20)
        try:
            text = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
            connection.request(method, target, text, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            said = answer.read()
            is_json = answer.headers.get("Content-Type", "").startswith("application/json")
            return answer.status, answer.headers, json.loads(said) if is_json and said else said
        finally:
            connection.close()

    def driver(self):
        status, _, report = self.ask("GET", f"/v1/drivers/d1?{OPS}")
        self.assertEqual(status, 200, report)
        return report

    # Phones

    def test_owntracks(self):
        basic = base64.b64encode(f"d1:{KEY}".encode()).decode()
        now = int(time.time())
        fix = {"_type": "location", "BSSID": "00:11:22:33:44:55", "acc": 5, "alt": 519, "batt": 81, "bs": 1, "conn": "w",
               "created_at": now, "lat": 48.1371, "lon": 11.5754, "m": 1, "t": "u", "tid": "d1", "topic":
               "owntracks/d1/phone", "tst": now, "vac": 3, "vel": 30, "cog": 270}
        status, _, said = self.ask("POST", "/v1/owntracks", fix, Authorization=f"Basic {basic}", X_Limit_U="d1",
                                   X_Limit_D="phone", Content_Type="application/json; charset=utf-8")
        self.assertEqual((status, said), (200, []))
        report = self.driver()
        self.assertAlmostEqual(report["speed"], 30 / 3.6, delta=0.1)
        self.assertAlmostEqual(report["heading"], 270, delta=1)
        will = {"_type": "lwt", "tst": now, "custom": False}
        self.assertEqual(self.ask("POST", "/v1/owntracks", will, Authorization=f"Basic {basic}")[0], 200)
        wrong = base64.b64encode(b"d1:another key of thirty-two characters").decode()
        self.assertEqual(self.ask("POST", "/v1/owntracks", fix, Authorization=f"Basic {wrong}")[0], 401)

    def test_osmand_and_traccar(self):
        now = int(time.time())
        query = (f"key={KEY}&id=d1&lat=48.1371&lon=11.5754&timestamp={now - 10}"
                 "&hdop=1&altitude=519&speed=16.2&bearing=90")
        self.assertEqual(self.ask("GET", f"/v1/osmand?{query}")[0], 200)
        self.assertAlmostEqual(self.driver()["speed"], 16.2 * 0.514444, delta=0.1)
        form = urllib.parse.urlencode({"id": "d1", "lat": "48.13715", "lon": "11.57545", "timestamp": now - 5,
                                       "speed": "16.2", "bearing": 90, "batt": "81.0"})
        self.assertEqual(self.ask("POST", f"/v1/osmand?key={KEY}", form,
                                  Content_Type="application/x-www-form-urlencoded")[0], 200)
        self.assertEqual(self.driver()["timestamp"], (now - 5) * 1000)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now))
        body = {"location": {"timestamp": moment, "coords": {
            "latitude": 48.1372, "longitude": 11.5755, "accuracy": 5, "speed": 8, "heading": 90, "altitude": 519},
            "is_moving": True, "odometer": 12.5, "event": "motionchange",
            "battery": {"level": 0.5, "is_charging": False},
            "activity": {"type": "in_vehicle"}, "extras": {}, "_": "&id=d1"}, "device_id": "d1"}
        self.assertEqual(self.ask("POST", f"/v1/osmand?key={KEY}", body, Content_Type="application/json")[0], 200)
        self.assertEqual(self.driver()["timestamp"], now * 1000)
        self.assertEqual(self.ask("GET", f"/v1/osmand?key={KEY}&id=d2&lat=48&lon=11")[0], 403)

    def test_overland(self):
        now = int(time.time())
        points = [{"type": "Feature", "geometry": {"type": "Point", "coordinates": [11.5754, 48.1371 + step / 10000]},
                   "properties": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - 30 + 10 * step)),
                                  "altitude": 519, "speed": 1.2, "horizontal_accuracy": 5, "vertical_accuracy": 3,
                                  "motion": ["driving"], "battery_state": "unplugged", "battery_level": 0.8,
                                  "wifi": "", "device_id": "d1", "course": 0}} for step in range(4)]
        status, _, said = self.ask("POST", "/v1/overland", {"locations": points, "current": points[-1]},
                                   Authorization=f"Bearer {KEY}", Content_Type="application/json")
        self.assertEqual((status, said), (200, {"result": "ok"}))
        self.assertEqual(self.driver()["timestamp"], now * 1000)
        page = self.ask("GET", f"/metrics?{OPS}")[2].decode()
        self.assertIn('locationhub_phone_fixes_total{app="overland",outcome="accepted"} 4\n', page)

    # Back ends

    def offer_driver(self, name):
        """A driver who is on the map and available; its events come to the list that this gives."""
        fix = {"latitude": 48.1371, "longitude": 11.5754, "timestamp": int(time.time() * 1000), "accuracy": 5}
        self.assertEqual(self.ask("POST", f"/v1/locations?role=driver&id={name}", fix)[0], 200)

    def test_offers(self):
        for name in ("d1", "d2"):
            self.offer_driver(name)
        offer = {"drivers": 2, "duration": 120}
        trip = {"tripId": "t1", "pickup": {"latitude": 48.1371, "longitude": 11.5754}}
        self.assertEqual(self.ask("POST", f"/v1/trips?{OPS}", trip)[0], 201)
        status, headers, offers = self.ask("POST", f"/v1/trips/t1/offers?{OPS}", offer, Idempotency_Key="o1")
        self.assertEqual((status, headers["Location"], offers["state"]), (201, "/v1/trips/t1/offers", "open"))
        again = self.ask("POST", f"/v1/trips/t1/offers?{OPS}", offer, Idempotency_Key="o1")
        self.assertEqual((again[0], again[2]["created"]), (200, offers["created"]))
        asked, until = [], time.monotonic() + 60
        while len(asked) < 2 and time.monotonic() < until:
            asked = self.ask("GET", f"/v1/trips/t1/offers?{OPS}")[2]["asked"]
        self.assertEqual(sorted(entry["driverId"] for entry in asked), ["d1", "d2"])
        accepted = {"type": "trip_status", "messageId": "m1", "timestamp": int(time.time() * 1000), "payload": {
            "tripId": "t1", "status": "accepted", "timestamp": int(time.time() * 1000)}}
        status, _, said = self.ask("POST", "/v1/messages?role=driver&id=d1", accepted)
        self.assertEqual((status, said["type"]), (200, "ack"), said)
        shown = self.ask("GET", f"/v1/trips/t1/offers?{OPS}")[2]
        self.assertEqual((shown["state"], {entry["driverId"]: entry["answer"] for entry in shown["asked"]}),
                         ("taken", {"d1": "accepted", "d2": "taken"}))
        self.assertEqual(self.ask("GET", "/v1/trips/t1/offers?role=rider&id=r1")[0], 403)

    def test_offers_end(self):
        self.offer_driver("d1")
        self.ask("POST", f"/v1/trips?{OPS}", {"tripId": "t2", "pickup": {"latitude": 48.1371, "longitude": 11.5754}})
        self.assertEqual(self.ask("POST", f"/v1/trips/t2/offers?{OPS}")[0], 201)
        self.assertEqual(self.ask("DELETE", f"/v1/trips/t2/offers?{OPS}")[0], 204)
        self.assertEqual(self.ask("GET", f"/v1/trips/t2/offers?{OPS}")[2]["state"], "stopped")

    def test_status_of_a_driver(self):
        self.offer_driver("d1")
        path = f"/v1/drivers/d1/status?{OPS}"
        first = self.ask("PUT", path, {"status": "available", "vehicleType": "van"}, Idempotency_Key="s1")
        self.assertEqual((first[0], first[2]["status"], first[2]["vehicleType"]), (200, "available", "van"))
        second = self.ask("PUT", path, {"status": "unavailable"}, Idempotency_Key="s2")
        self.assertEqual(second[2]["status"], "unavailable")
        late = self.ask("PUT", path, {"status": "available", "vehicleType": "van"}, Idempotency_Key="s1")
        self.assertEqual((late[0], late[2]["status"]), (200, "unavailable"), "it was answered long ago")
        self.hub.kill()
        self.hub.start()
        late = self.ask("PUT", path, {"status": "available"}, Idempotency_Key="s1")
        self.assertEqual(late[2]["status"], "unavailable", "over a restart, too")
        other = self.ask("PUT", "/v1/drivers/d1/status?role=ops&id=desk", {"status": "available"}, Idempotency_Key="s1")
        self.assertEqual(other[2]["status"], "available", "another's key is another")
        self.assertEqual(self.ask("PUT", "/v1/drivers/d1/status?role=rider&id=r1", {"status": "available"})[0], 403)

    def test_sessions(self):
        path = f"/v1/sessions?sub=r1&{OPS}"
        self.assertEqual(self.ask("GET", path)[2], {"sub": "r1", "sessions": []})
        stream = http.client.HTTPConnection("127.0.0.1", self.hub.port, timeout=20)
        stream.request("GET", "/v1/events?channel=area:u281z&role=rider&id=r1", headers={"Accept": "text/event-stream"})
        answer = stream.getresponse()
        self.assertEqual(answer.status, 200)
        answer.readline()
        self.assertEqual(self.ask("GET", path)[2]["sessions"], [{"role": "rider", "count": 1}])
        answer.close()
        stream.close()
        until = time.monotonic() + 60
        while self.ask("GET", path)[2]["sessions"] and time.monotonic() < until:
            pass
        self.assertEqual(self.ask("GET", path)[2]["sessions"], [])

    def test_tokens_are_listed_and_ended(self):
        asked = {"sub": "r1", "role": "rider"}
        pairs = [self.ask("POST", f"/v1/tokens?{OPS}", asked, Idempotency_Key=key) for key in ("k1", "k1", "k2")]
        self.assertEqual([pair[0] for pair in pairs], [201, 200, 201])
        self.assertEqual(pairs[0][2]["refreshToken"], pairs[1][2]["refreshToken"])
        self.assertEqual(pairs[0][1]["Cache-Control"], "no-store")
        listed = self.ask("GET", f"/v1/tokens?sub=r1&{OPS}")[2]["tokens"]
        self.assertEqual({family["jti"] for family in listed}, {pairs[0][2]["jti"], pairs[2][2]["jti"]})
        self.assertEqual(self.ask("DELETE", f"/v1/tokens?sub=r1&{OPS}")[2], {"ended": 2})
        self.assertEqual(self.ask("GET", f"/v1/tokens?sub=r1&{OPS}")[2], {"tokens": []})
        refused = self.ask("POST", "/v1/tokens/refresh", {"refreshToken": pairs[0][2]["refreshToken"]})
        self.assertEqual(refused[0], 401)
        bearer = f"Bearer {pairs[0][2]['accessToken']}"
        self.assertEqual(self.ask("GET", "/v1/trips/t1", Authorization=bearer)[0], 401)
        self.assertEqual(self.ask("GET", f"/v1/tokens?{OPS}")[0], 400)

    def test_answers_say_how_much_may_be_asked(self):
        seen = [self.ask("GET", f"/v1/drivers?{OPS}")[1] for _ in range(3)]
        self.assertEqual({headers["RateLimit-Limit"] for headers in seen}, {"2000"})
        for headers in seen:
            self.assertIn(int(headers["RateLimit-Remaining"]), range(1900, 2001))
            self.assertIn(int(headers["RateLimit-Reset"]), range(0, 10))


if __name__ == "__main__":
    unittest.main()
