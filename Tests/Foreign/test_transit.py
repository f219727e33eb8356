"""The feed of vehicles as GTFS-realtime's official bindings read it.

Run it with Tests/Foreign/run.sh, which builds the environment that it needs.
"""

import json
import time
import unittest
import urllib.error
import urllib.request

from google.transit import gtfs_realtime_pb2
from hub_process import HubProcess

PATH = "/v1/gtfs-realtime/vehicle-positions"


class Transit(unittest.TestCase):
    def hub(self, *options):
        hub = HubProcess(*options, journal=False)
        self.addCleanup(hub.stop)
        return hub

    def post(self, hub, path, body):
        request = urllib.request.Request(hub.url(path), json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def feed(self, hub, query):
        with urllib.request.urlopen(hub.url(f"{PATH}?{query}"), timeout=20) as answer:
            self.assertEqual(answer.headers["Content-Type"], "application/x-protobuf")
            body = answer.read()
        feed = gtfs_realtime_pb2.FeedMessage()
        feed.ParseFromString(body)
        self.assertEqual(feed.SerializeToString(), body, "as the bindings write it")
        return feed

    def status(self, hub, query):
        try:
            with urllib.request.urlopen(hub.url(f"{PATH}?{query}"), timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def test_each_vehicle_is_in_it_with_its_trip(self):
        hub = self.hub()
        now = int(time.time() * 1000)
        for number in range(1, 40):
            fix = {"latitude": 48 + number / 1000, "longitude": -11.5, "timestamp": now, "speed": number, "accuracy": 5}
            if number % 2:
                fix["heading"] = number
            self.post(hub, f"/v1/locations?role=driver&id=d{number}", fix)
        for status in ("requested", "accepted"):
            self.post(hub, "/v1/trips/T1/status?role=ops&id=o", {"status": status, "driverId": "d1"})
        fix = {"latitude": 48.002, "longitude": -11.5, "timestamp": now + 1000, "accuracy": 5}
        self.post(hub, "/v1/locations?trip=current&role=driver&id=d1", fix)
        feed = self.feed(hub, "role=ops&id=o")
        self.assertEqual(feed.header.gtfs_realtime_version, "2.0")
        self.assertEqual(feed.header.incrementality, gtfs_realtime_pb2.FeedHeader.FULL_DATASET)
        self.assertLess(abs(feed.header.timestamp - time.time()), 60)
        vehicles = {entity.id: entity.vehicle for entity in feed.entity}
        self.assertEqual(sorted(vehicles), sorted(f"d{number}" for number in range(1, 40)))
        self.assertEqual(vehicles["d1"].trip.trip_id, "T1")
        self.assertFalse(vehicles["d2"].HasField("trip"))
        self.assertEqual(vehicles["d3"].vehicle.id, "d3")
        self.assertAlmostEqual(vehicles["d3"].position.latitude, 48.003, 4)
        self.assertAlmostEqual(vehicles["d3"].position.longitude, -11.5, 4)
        self.assertEqual(vehicles["d3"].timestamp, now // 1000)

    def test_it_is_for_ops_unless_it_is_made_public(self):
        closed, public = self.hub(), self.hub("--public-gtfs")
        self.assertEqual(self.status(closed, "role=rider&id=r"), 403)
        self.assertEqual(self.status(closed, ""), 401)
        self.assertEqual(self.status(public, ""), 200)
        self.assertEqual(self.status(public, "vehicleType=bus"), 401)
        self.assertEqual(self.status(public, "vehicleType=bus&role=ops&id=o"), 200)
        self.assertEqual(self.status(public, "vehicletype=bus"), 400)


if __name__ == "__main__":
    unittest.main()
