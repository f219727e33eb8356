"""openapi.yaml against the specification, the tables of http.md, what must be refused, and a running hub's answers."""
import json
import re
import time
import unittest
import urllib.parse

import openapi_spec_validator
from openapi_spec_validator.readers import read_from_filename

from descriptions import OpenAPI, PROTOCOL, expanded, inner, lines, parsed
from hub import IDS, Hub, role_for

# Described answers that one hub alone does not give to the requests below.
UNSEEN = {
    ("get", "/v1/ws", "101"),  # every other test of this project sees it
    ("get", "/v1/events", "204"),  # a stream that is resumed after its trip's grace
    ("post", "/v1/trips/{tripId}/status", "204"),  # a hub of a cluster
    ("post", "/v1/trips/{tripId}/offers", "200"),  # a driver that is asked and has not answered yet
    ("get", "/streets/14/{x}/{y}", "200"), ("get", "/streets/14/{x}/{y}", "304"),  # more streets than fit one file
}
# Vectors of refused/http.ndjson whose fault no description can say.
BEYOND = {
    # Schemas leave objects open; a time may be 0, for all; and they don't know the time.
    "a revocation with an unknown member", "a fence whose filter has an unknown member", "a trip with an unknown member",
    "a list of trips since a time in seconds", "a revocation that has ended",
    "nearby without radius and limit", "within a box with south above north", "within a ring that is open",
    "an event stream with the last id of other channels", "offers of a trip without a pickup",
    "a request for a trip that names its driver and asks for offers",
    "a notification with a messageId and an Idempotency-Key",
}
NOW = int(time.time() * 1000)
PLACE, OTHER = {"latitude": 48.1371, "longitude": 11.5754}, {"latitude": 48.1402, "longitude": 11.5581}
FIX = {**PLACE, "accuracy": 5, "heading": 270.5, "speed": 8.3, "altitude": 519.2}
POLYGON = {"type": "Polygon", "coordinates": [[[11, 48], [12, 48], [12, 49], [11, 49], [11, 48]]]}
TRIP = {"tripId": "trip-7", "driverId": "driver-12", "riderId": "rider-3", "pickup": PLACE, "dropoff": OTHER,
        "route": [PLACE, OTHER]}
NOTE = {"channel": "trip:trip-7", "kind": "message", "title": "Gate 4", "body": "Wait.", "messageId": "n1"}


def envelope(kind, payload, number=1):
    return {"type": kind, "payload": payload, "timestamp": NOW, "messageId": f"m{number}"}


# What is asked, in order; the last member is who asks where it is not whose path it is.
# Nobody listens there.
WEBHOOK = {"url": "http://127.0.0.1:9/", "channels": ["trip:*"]}
REQUESTS = [
    ("POST", "/v1/locations", {"locations": [{**FIX, "timestamp": NOW - 5000}, {**FIX, "latitude": 91}]}),
    ("POST", "/v1/trips", TRIP), ("POST", "/v1/trips", TRIP), ("POST", "/v1/trips", {**TRIP, "dropoff": PLACE}),
    ("POST", "/v1/trips/trip-7/status", {"status": "accepted"}),
    ("POST", "/v1/trips/trip-7/status", {"status": "completed"}),
    ("POST", "/v1/trips/trip-8/status", {"status": "accepted"}),
    ("POST", "/v1/locations?trip=current", {**FIX, "timestamp": NOW - 4000}),
    ("POST", "/v1/locations", {"tripId": "trip-7", "locations": [{**FIX, "timestamp": NOW - 3000 + 1000 * step}
                                                                 for step in range(3)]}),
    ("PATCH", "/v1/trips/trip-7", {"dropoff": PLACE}), ("PATCH", "/v1/trips/trip-8", {"dropoff": PLACE}),
    ("PATCH", "/v1/trips/trip-7", {}),
    ("GET", "/v1/trips/trip-7", None), ("GET", "/v1/trips/trip-8", None), ("GET", "/v1/trips/trip-7", None, "rider"),
    ("GET", "/v1/trips?status=accepted,completed&driver=driver-12&since=1&limit=1", None),
    ("GET", "/v1/trips?status=lost", None), ("GET", "/v1/trips", None, "rider"),
    ("POST", "/v1/trips/trip-7/shares", {"expires": NOW + 3_600_000}), ("GET", "/v1/trips/trip-7/shares", None),
    ("POST", "/v1/trips/trip-7/shares", None), ("DELETE", "/v1/trips/trip-7/shares/{share}", None),
    ("DELETE", "/v1/trips/trip-7/shares/none", None),
    ("POST", "/v1/trips", {"tripId": "trip-9", "pickup": PLACE, "offer": {"radius": 500, "drivers": 2}}),
    ("GET", "/v1/trips/trip-9/offers", None), ("DELETE", "/v1/trips/trip-9/offers", None),
    ("POST", "/v1/trips/trip-9/offers", {"vehicleType": "van", "limit": 3}), ("POST", "/v1/trips/trip-9/offers", None),
    ("POST", "/v1/trips/trip-9/offers", {"drivers": 17}), ("POST", "/v1/trips/trip-7/offers", {}),
    ("GET", "/v1/trips/trip-7/offers", None), ("POST", "/v1/trips/none/offers", None),
    ("GET", "/v1/trips/trip-9/offers", None, "rider"),
    ("GET", "/v1/trips/trip-7/track", None), ("GET", "/v1/trips/trip-7/track.geojson?source=raw&tolerance=1", None),
    ("GET", "/v1/trips/trip-7/track.gpx", None), ("GET", "/v1/trips/trip-7/track.csv", None),
    ("GET", "/v1/trips/trip-8/track", None),
    ("PUT", "/v1/drivers/driver-12/status", {"status": "available", "vehicleType": "van", "tags": ["xl", "taxi"]}),
    ("GET", "/v1/drivers/driver-12", None), ("GET", "/v1/drivers/driver-12", None, "driver"),
    ("GET", "/v1/drivers/none", None), ("GET", "/v1/drivers?search=driver&status=on_trip,offline&limit=1", None),
    ("GET", "/v1/drivers/nearby?latitude=48&longitude=11&radius=100000&limit=5&tags=xl&maxAge=60&stale=true", None),
    ("GET", "/v1/drivers/nearby?latitude=48.1371&longitude=11.5754&radius=500", None, "rider"),
    ("GET", "/v1/drivers/within?bbox=11,48,12,49&status=on_trip&vehicleType=van", None),
    ("POST", "/v1/drivers/within", POLYGON), ("POST", "/v1/drivers/within", {"type": "Point"}),
    ("PUT", "/v1/fences/airport", {"title": "Airport", "circle": {**PLACE, "radius": 500}, "dwell": 60,
                                   "drivers": {"tags": ["taxi"]}, "speedLimit": 14}),
    ("PUT", "/v1/fences/airport", {"kind": "hazard", "polygon": POLYGON}),
    ("PUT", "/v1/fences/road", {"corridor": {"route": [PLACE, OTHER], "width": 20}}),
    ("PUT", "/v1/fences/road", {"kind": "roaming", "distance": 100}),
    ("PUT", "/v1/fences/convoy", {"kind": "roaming", "distance": 100, "others": {"status": "on_trip"}}),
    ("PUT", "/v1/fences/none", {}), ("GET", "/v1/fences/none", None), ("GET", "/v1/fences/road", None),
    ("GET", "/v1/fences?limit=1", None), ("GET", "/v1/fences?shape=full", None),
    ("DELETE", "/v1/fences/road", None), ("DELETE", "/v1/fences/road", None),
    ("POST", "/v1/notifications", NOTE), ("POST", "/v1/notifications", NOTE),
    ("POST", "/v1/notifications", {**NOTE, "body": "Go."}),
    ("POST", "/v1/notifications", {**NOTE, "channel": "trip:x"}),
    ("POST", "/v1/notifications", {**NOTE, "messageId": None}, None, {"Idempotency-Key": "n2"}),
    ("POST", "/v1/messages", envelope("query", {"kind": "nearby", **PLACE, "limit": 5})),
    ("POST", "/v1/messages", envelope("query", {"kind": "driver", "driverId": "driver-12"})),
    ("POST", "/v1/messages", envelope("query", {"kind": "trip", "tripId": "trip-7"})),
    ("POST", "/v1/messages", envelope("query", {"kind": "trip", "tripId": "trip-8"})),
    ("POST", "/v1/messages", envelope("ping", {"sentAt": 12.5})), ("POST", "/v1/messages", envelope("teleport", {})),
    ("POST", "/v1/messages", envelope("location_update", {**FIX, "timestamp": NOW}), "driver"),
    ("POST", "/v1/messages", envelope("trip_status", {"tripId": "trip-7", "status": "requested", "timestamp": NOW})),
    ("GET", "/v1/events?channel=trip:trip-7&channel=driver:driver-12", None), ("GET", "/v1/events?channel=x", None),
    ("GET", "/v1/gtfs-realtime/vehicle-positions", None), ("GET", "/v1/gtfs-realtime/vehicle-positions?x=1", None),
    ("GET", "/v1/gtfs-realtime/vehicle-positions", None, "rider"),
    ("GET", "/v1/sessions?sub=driver-12", None), ("GET", "/v1/sessions", None),
    ("POST", "/v1/tokens", {"sub": "rider-4", "role": "rider"}, None, {"Idempotency-Key": "k1"}),
    ("POST", "/v1/tokens", {"sub": "rider-4", "role": "rider"}, None, {"Idempotency-Key": "k1"}),
    ("POST", "/v1/tokens", {"sub": "rider-3", "role": "rider", "trips": ["trip-7"]}), ("POST", "/v1/tokens", {}),
    ("GET", "/v1/tokens?sub=rider-3", None), ("GET", "/v1/tokens", None),
    ("POST", "/v1/tokens/refresh", {"refreshToken": "{refresh}"}), ("POST", "/v1/tokens/refresh", {}),
    ("POST", "/v1/tokens/refresh", {"refreshToken": "a.b.c"}),
    ("DELETE", "/v1/tokens?sub=rider-3", None), ("DELETE", "/v1/tokens", None),
    ("POST", "/v1/revocations", {"sub": "rider-9", "until": NOW + 3_600_000}),
    ("POST", "/v1/revocations", {"sub": "rider-9", "until": NOW + 3_600_000}), ("POST", "/v1/revocations", {}),
    ("GET", "/v1/revocations?limit=1", None), ("GET", "/v1/revocations?limit=0", None),
    ("DELETE", "/v1/revocations?sub=rider-9", None), ("DELETE", "/v1/revocations?sub=rider-9", None),
    ("DELETE", "/v1/revocations", None),
    ("PUT", "/v1/webhooks/orders", WEBHOOK), ("PUT", "/v1/webhooks/orders", {**WEBHOOK, "types": ["trip.update"]}),
    ("PUT", "/v1/webhooks/orders", {}), ("PUT", "/v1/webhooks/orders", {**WEBHOOK, "url": "https://b.example/"}),
    ("GET", "/v1/webhooks", None), ("GET", "/v1/webhooks", None, "rider"), ("GET", "/v1/webhooks/orders", None),
    ("GET", "/v1/webhooks/none", None), ("GET", "/v1/webhooks/orders/dead?limit=10", None),
    ("POST", "/v1/webhooks/orders/enable", None), ("POST", "/v1/webhooks/orders/replay", {"since": NOW}),
    ("POST", "/v1/webhooks/orders/replay", {}), ("POST", "/v1/webhooks/orders/replay", {"ids": ["evt_a_999999_0"]}),
    ("POST", "/v1/webhooks/orders/test", None), ("POST", "/v1/webhooks/orders/secret", None),
    ("DELETE", "/v1/webhooks/orders", None), ("DELETE", "/v1/webhooks/orders", None),
    ("POST", "/v1/owntracks", {"_type": "location", "lat": 48.1371, "lon": 11.5754, "tst": NOW // 1000, "batt": 81}),
    ("GET", "/v1/osmand?lat=48.1371&lon=11.5754&speed=16.2", None),
    ("GET", "/v1/osmand?deviceid=driver-13&lat=48&lon=11", None),
    ("POST", "/v1/osmand", {"location": {"timestamp": "2025-11-20T23:06:40Z", "coords": PLACE}}),
    ("POST", "/v1/overland", {"locations": []}),
    ("GET", "/healthz", None), ("GET", "/readyz", None), ("GET", "/readyz?engine", None), ("GET", "/metrics", None),
    ("GET", "/v1/about", None), ("GET", "/streets", None), ("GET", "/streets/14/1/2", None),
    ("GET", "/tiles/1/1/1", None), ("GET", "/tiles/1/0/0", None), ("GET", "/tiles/0/1/0", None),
    ("GET", "/track/trip-7", None), ("GET", "/v1/ws", None),
]


class TestOpenAPI(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.api = OpenAPI()

    def test_it_is_an_openapi_document(self):
        document, base = read_from_filename(str(PROTOCOL / "openapi.yaml"))
        openapi_spec_validator.validate(document, base_uri=base)
        self.assertTrue(document["openapi"].startswith("3.1."))

    def test_the_statuses_and_codes_of_refusals_are_those_of_http_md(self):
        text = (PROTOCOL / "http.md").read_text(encoding="utf-8")
        table = text.split("<!-- table HTTP refusals")[1].split("<!-- end")[0]
        rows = {row[0]: set(re.findall(r"`(\w+)`", row[1])) for row in (
            [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()) if row[0].isdigit()}
        described = {}
        for _, method, operation in self.api.operations():
            for status, response in operation["responses"].items():
                if status >= "400" and not response["$ref"].split("/")[-1].startswith("Message"):
                    schema = self.api.resolve(response)["content"]["application/json"]["schema"]
                    codes = schema["allOf"][1]["properties"]["error"]["properties"]["code"]["enum"]
                    self.assertEqual(described.setdefault(status, set(codes)), set(codes))
        for status in {"405", "501", "505"}:  # of what no operation is: they are described in words
            self.assertIn(status, self.api.document["info"]["description"])
            self.assertEqual(rows.pop(status), {"bad_message"})
        self.assertEqual(rows, described)

    def test_what_must_be_refused_over_http_does_not_fit(self):
        fitting = set()
        for vector in lines("refused/http.ndjson"):
            if vector["status"] not in (400, 413) or vector["code"] == "bad_json" or "/v1/ws" in vector["request"]:
                continue
            method, target = vector["request"].split(" ")
            if not request_faults(self.api, method, target, vector.get("body")):
                fitting.add(vector["name"])
        self.assertEqual(fitting, BEYOND)


class TestAnswers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.api, cls.hub = OpenAPI(), Hub()
        cls.seen, cls.faults, cls.share, cls.refresh = set(), [], None, ""
        try:
            for request in REQUESTS:
                cls.ask(*request)
            for path, method, operation in cls.api.operations():
                cls.ask_anyhow(path, method, operation)
        except BaseException:
            cls.hub.stop()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.hub.stop()

    @classmethod
    def ask(cls, method, target, body, role=None, fields=None):
        target = target.replace("{share}", cls.share or "")
        path = target.split("?")[0]
        role = role or role_for(path)
        if path.startswith("/v1/") and path != "/v1/about":
            target += ("&" if "?" in target else "?") + f"role={role}&id={IDS[role]}"
        text = None if body is None else json.dumps(body).replace("{refresh}", cls.refresh)
        cls.look(method, path, *cls.hub.ask(method, target, text, fields))

    @classmethod
    def ask_anyhow(cls, path, method, operation):
        """Without a credential; with one in two places; and what can be had again, unless it has changed."""
        target = filled(path)
        if operation.get("security", True):
            proxied = {"X-Forwarded-For": "192.0.2.1"}  # or /metrics would need no credential
            cls.look(method.upper(), target, *cls.hub.ask(method.upper(), target, None, proxied))
            two = {"Authorization": "Bearer a.b.c"}
            cls.look(method.upper(), target, *cls.hub.ask(method.upper(), f"{target}?access_token=a.b.c", None, two))
        elif "304" in operation["responses"]:
            cls.look("GET", target, *cls.hub.ask("GET", target))
            cls.look("GET", target, *cls.hub.ask("GET", target, None, {"If-None-Match": "*"}))
        cls.look(method.upper(), target, *cls.hub.ask(method.upper(), target, None, {"Origin": "https://evil.example"}))

    @classmethod
    def look(cls, method, path, status, kind, body):
        template, operation, _ = cls.api.find(method, path)
        cls.faults += cls.api.answer_faults(method, path, status, kind, body)
        cls.seen.add((method.lower(), template, str(status)))
        if template and template.endswith("/shares") and status == 201:
            cls.share = json.loads(body)["shareId"]
        if template == "/v1/tokens" and status == 201:
            cls.refresh = json.loads(body)["refreshToken"]

    def test_every_answer_is_described(self):
        self.assertEqual(self.faults, [])

    def test_every_described_success_was_seen(self):
        described = {(method, path, status) for path, method, operation in self.api.operations()
                     for status in operation["responses"] if status < "400"}
        self.assertEqual(described - self.seen, UNSEEN)

    def test_the_parameters_of_queries_are_those_that_the_hub_knows(self):
        """The hub says which it knows where one is misspelled."""
        looked_at = 0
        for path, method, operation in self.api.operations():
            if not operation.get("security", True) or path in ("/v1/ws", "/metrics") or "phones" in operation["tags"]:
                continue  # there others are passed over
            role = role_for(path)
            query = f"misspelled=1&role={role}&id={IDS[role]}"
            _, _, body = self.hub.ask(method.upper(), f"{filled(path)}?{query}")
            known = json.loads(body)
            known = (known.get("error") or known["payload"])["message"].split("here, only ")[1].split(", ")
            described = {parameter["name"] for parameter in map(self.api.resolve, operation["parameters"])
                         if parameter["in"] == "query"}
            self.assertEqual(described, set(known) - {"access_token", "role", "id"}, f"{method} {path}")
            looked_at += 1
        self.assertGreater(looked_at, 20)


def filled(path):
    """A path with something for each of its parameters."""
    return re.sub(r"\{\w+\}", "1", path)


def request_faults(api, method, target, text):
    """What in a request is not as it is described: its parameters, and its body."""
    target = urllib.parse.urlsplit(target)
    _, operation, values = api.find(method, target.path)
    if operation is None:
        return ["it is not described"]
    found, given = [], urllib.parse.parse_qs(target.query, keep_blank_values=True)
    parameters = [api.resolve(parameter) for parameter in operation.get("parameters", [])]
    for parameter in parameters:
        name = parameter["name"]
        texts = [urllib.parse.unquote(values[name])] if parameter["in"] == "path" else given.pop(name, [])
        if parameter["in"] == "header":
            continue
        if not texts:
            found += [f"{name} is missing"] if parameter.get("required") else []
        else:
            found += api.schemas.faults_of(inner(parameter["schema"]), value_of(parameter, texts))
    found += [f"{name} is unknown" for name in given.keys() - {"role", "id", "access_token"}]
    if text is not None and "requestBody" in operation:
        try:
            body = parsed(expanded(text))
        except ValueError:
            return found + ["the body is no JSON"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        found += api.schemas.faults_of(inner(schema), body)
    return found


def value_of(parameter, texts):
    """The value that the texts of a parameter stand for."""
    def scalar(text):
        try:
            return json.loads(text)
        except ValueError:
            return text

    if parameter.get("explode") is False:
        return [scalar(part) for part in texts[0].split(",")]
    if parameter["schema"].get("type") == "array":
        return texts
    return scalar(texts[0]) if len(texts) == 1 else texts


if __name__ == "__main__":
    unittest.main(verbosity=2)
