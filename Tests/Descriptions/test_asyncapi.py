"""asyncapi.yaml against the specification's object model, the schemas and the examples."""
import json
import time
import unittest
import urllib.parse
import warnings

from descriptions import Schemas, lines, load
from hub import IDS, Hub

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the library's own, about names of its fields
    import asyncapi3


class TestAsyncAPI(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document = load("asyncapi.yaml")
        cls.messages = cls.document["components"]["messages"]

    def test_it_is_an_asyncapi_document(self):
        model = asyncapi3.AsyncAPI3.model_validate(self.document)
        self.assertEqual(model.asyncapi, "3.0.0")

    def test_every_reference_leads_somewhere(self):
        schemas = load("schemas.yaml")
        count = 0
        for reference in references(self.document):
            count += 1
            document, _, pointer = reference.partition("#/")
            self.assertIn(document, ("", "schemas.yaml"))
            target = schemas if document else self.document
            for key in pointer.split("/"):
                self.assertIn(key, target, reference)
                target = target[key]
        self.assertGreater(count, 2 * len(self.messages))

    def test_every_message_of_the_schemas_is_described_under_its_own_name(self):
        names = [name for name in load("schemas.yaml")["$defs"] if name[0].islower()]
        self.assertEqual(sorted(self.messages), sorted(names))
        for name, message in self.messages.items():
            self.assertEqual(message["name"], name)
            self.assertEqual(message["payload"]["$ref"], f"schemas.yaml#/$defs/{name}")

    def test_each_message_has_the_direction_that_the_examples_have(self):
        directions = {"receive": set(), "send": set()}
        for operation in self.document["operations"].values():
            for message in operation["messages"]:
                directions[operation["action"]].add(message["$ref"].rsplit("/", 1)[1])
        examples = {"receive": set(), "send": set()}
        for line in lines("examples.ndjson"):
            examples["receive" if line["direction"] == "client" else "send"].add(line["message"]["type"])
        self.assertEqual(directions, examples)


class TestPublications(unittest.TestCase):
    def test_what_a_hub_publishes_fits_its_schema_which_names_all_its_members(self):
        wanted = {"subscribed", "driver_location", "eta_update", "area_update", "counts_update", "raw_fix", "stats",
                  "trip_update", "notification"}
        hub, schemas, seen = Hub(), Schemas(), set()
        try:
            query = urllib.parse.urlencode([("channel", name) for name in CHANNELS] + [("role", "ops"), ("id", "o")])
            for number, message in enumerate(hub.stream(f"/v1/events?{query}"), 1):
                kind = message["type"]
                self.assertEqual(schemas.faults(kind, message), [], message)
                self.assertEqual(schemas.unnamed({"$ref": f"#/$defs/{kind}"}, message), [], message)
                if number == len(CHANNELS):
                    self.drive(hub)
                seen.add(kind)
                if seen == wanted:
                    break
        finally:
            hub.stop()
        self.assertEqual(seen, wanted)

    def drive(self, hub):
        """A trip begins, its driver sends a fix on it, and gets a notification."""
        place, now = {"latitude": 48.1371, "longitude": 11.5754}, int(time.time() * 1000)
        trip = {"tripId": "T", "driverId": "driver-12", "pickup": {"latitude": 48.15, "longitude": 11.6}}
        note = {"channel": "driver:driver-12", "kind": "message", "title": "a", "body": "b", "data": {"gate": 4}}
        fix = {**place, "tripId": "T", "accuracy": 5, "heading": 270.5, "speed": 8.3, "source": "gps"}
        for path, role, body in [("trips", "ops", trip), ("trips/T/status", "ops", {"status": "accepted"}),
                                 ("locations", "driver", {**fix, "timestamp": now}), ("notifications", "ops", note)]:
            answer = hub.ask("POST", f"/v1/{path}?role={role}&id={IDS[role]}", json.dumps(body))
            self.assertLess(answer[0], 300, answer)


CHANNELS = ["trip:T", "driver:driver-12", "raw:driver-12", "fleet", "trips", "stats", "area:u281z",
            "nearby:48.1371,11.5754,500", "box:11.57,48.13,11.58,48.14", "counts:11.5,48.1,11.6,48.2"]


def references(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


if __name__ == "__main__":
    unittest.main(verbosity=2)
