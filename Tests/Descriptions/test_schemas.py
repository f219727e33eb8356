"""The schemas against what must be understood (examples.ndjson) and what must be refused (refused/)."""
import unittest

import jsonschema

from descriptions import OpenAPI, PROTOCOL, Schemas, expanded, inner, lines, load, parsed, without_siblings

# Codes of what a message itself shows; all others depend on who sends it, and when.
FAULTS = {"bad_json", "bad_message", "unknown_type", "too_large", "invalid_location", "unknown_channel"}
# What the vectors have and a schema cannot say. A name that is not needed here fails, so that the list only shrinks.
BEYOND_SCHEMAS = set("""
the first half of a surrogate pair alone
the second half of a surrogate pair alone
an accuracy beyond a double's range
a box whose south is north of its north
counts of a block in cells of another size
the size of cells with what is no view
nearby beyond the pole
nearby beyond the antimeridian
nearby with a radius of 0
a radius over 500 km
a circle round a pole
a view that there is not
a ping of 4,097 bytes
a bbox with south above north
a ring that is open
a ring without an area
a ring that crosses itself
a hole outside of its ring
a ring round a pole
a position beyond the antimeridian
an offer of a trip that names its driver
an offer of a trip without a pickup
""".strip().splitlines())
ADVICE = "describe it, or list what a schema cannot say"


class TestSchemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schemas = {time: Schemas(time) for time in ("unix_ms", "apple", "rfc3339")}
        names = cls.schemas["unix_ms"].names
        cls.messages = {name for name in names if name[0].islower()}

    def test_the_schemas_are_read_alike_by_both_drafts(self):
        document = load("schemas.yaml")
        for draft in (jsonschema.Draft7Validator, jsonschema.Draft202012Validator):
            for name, schema in document["$defs"].items():
                with self.subTest(name, draft=draft.__name__):
                    draft.check_schema(schema)
        self.assertTrue(without_siblings(document["$defs"]), "draft-07 ignores what stands beside a $ref")

    def test_each_schema_is_used(self):
        texts = [(PROTOCOL / name).read_text("utf-8") for name in ("schemas.yaml", "openapi.yaml", "asyncapi.yaml")]
        unused = [name for name in load("schemas.yaml")["$defs"]
                  if not any(f"#/$defs/{name}'" in text for text in texts)]
        self.assertEqual(unused, [])

    def test_every_example_fits_its_schema_which_names_all_its_members(self):
        for number, line in enumerate(lines("examples.ndjson"), 1):
            message, schemas = line["message"], self.schemas[line["time"]]
            with self.subTest(number, type=message["type"]):
                self.assertEqual(schemas.faults(message["type"], message), [])
                reference = {"$ref": f"#/$defs/{message['type']}"}
                self.assertEqual(schemas.unnamed(reference, message), [], "a member that is not described")

    def test_every_message_has_an_example(self):
        self.assertEqual({line["message"]["type"] for line in lines("examples.ndjson")}, self.messages)

    def test_what_must_be_refused_does_not_fit(self):
        fitting = set()
        for vector in lines("refused/json.ndjson"):
            if "text" not in vector:  # bytes that are no text
                continue
            with self.subTest(vector["name"]):
                fits = self.fits(expanded(vector["text"]), vector.get("time", "unix_ms"))
                if vector["code"] not in FAULTS:
                    self.assertTrue(fits, "it is refused for who sends it, or when: it must fit")
                elif fits:
                    fitting.add(vector["name"])
        self.assertEqual(sorted(fitting), sorted(BEYOND_SCHEMAS), ADVICE)

    def test_whatever_a_client_may_leave_out_may_be_null(self):
        schemas, openapi = self.schemas["unix_ms"], OpenAPI()
        bodies = [inner(content["schema"]) for _, _, operation in openapi.operations()
                  for content in openapi.resolve(operation.get("requestBody", {})).get("content", {}).values()
                  if "schema" in content]
        found = {}
        for schema in [{"$ref": f"#/$defs/{name}"} for name in CLIENT_MESSAGES] + bodies:
            found |= dict(schemas.members(schema))
        required = {path for path, (_, is_required) in found.items() if is_required}
        wrong = [path for path, (member, _) in found.items()
                 if path not in required and schemas.faults_of(member, None)]
        self.assertGreater(len(found) - len(required), 100)
        self.assertEqual(sorted(wrong), [])

    def fits(self, text, time):
        try:
            message = parsed(text)
        except (ValueError, RecursionError):
            return False
        if not isinstance(message, dict) or message.get("type") not in CLIENT_MESSAGES:
            return False
        return self.schemas[time].faults(message["type"], message) == []

    def test_what_a_client_cannot_read_does_not_fit(self):
        for vector in lines("refused/client.ndjson"):
            if "text" not in vector or vector["name"] == "members that are null":  # the hub writes no null here
                continue
            with self.subTest(vector["name"]):
                try:
                    message = parsed(vector["text"])
                except ValueError:
                    message = {}
                fits = message.get("type") in self.messages and not self.schemas["unix_ms"].faults(
                    message["type"], message)
                self.assertEqual(fits, vector["reads"] == "position")


CLIENT_MESSAGES = {line["message"]["type"] for line in lines("examples.ndjson") if line["direction"] == "client"}

if __name__ == "__main__":
    unittest.main(verbosity=2)
