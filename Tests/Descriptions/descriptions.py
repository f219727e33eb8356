"""The descriptions as the tests use them: schemas by name, each in the form that `time=` chooses, and what a schema
says of a value beyond whether it fits: which of its members it names."""
import copy
import json
import os
import pathlib

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTOCOL = ROOT / "protocol"
TIME_FORMS = {"unix_ms": "UnixMilliseconds", "apple": "AppleSeconds", "rfc3339": "RFC3339"}


def load(name):
    with open(PROTOCOL / name, encoding="utf-8") as file:
        return yaml.safe_load(file)


def lines(name):
    with open(PROTOCOL / name, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def without_siblings(schema):
    """Whether no `$ref` has a sibling: draft-07 does not read them, 2020-12 does."""
    if isinstance(schema, dict):
        return not ("$ref" in schema and len(schema) > 1) and all(map(without_siblings, schema.values()))
    return not isinstance(schema, list) or all(map(without_siblings, schema))


class Schemas:
    """`schemas.yaml` by one form of time."""

    def __init__(self, time="unix_ms"):
        self.document = copy.deepcopy(load("schemas.yaml"))
        self.names = self.document["$defs"]
        form = TIME_FORMS[time]
        self.names["Time"] = {"$ref": f"#/$defs/{form}"}
        self.names["RecentTime"] = {"$ref": f"#/$defs/Recent{form}"}

    def faults(self, name, value):
        """What is wrong with a value, by the rules of both drafts."""
        return self.faults_of({"$ref": f"#/$defs/{name}"}, value)

    def faults_of(self, schema, value):
        found = []
        for draft in (jsonschema.Draft7Validator, jsonschema.Draft202012Validator):
            document = {"$defs": self.names, "allOf": [schema]}
            validator = draft(document, format_checker=draft.FORMAT_CHECKER)
            found += [str(error.message)[:300] for error in validator.iter_errors(value)]
        return found

    def unnamed(self, schema, value, path=""):
        """The members of a value that no part of the schema names, and that it does not leave open."""
        if isinstance(value, list):
            items = [part["items"] for part in self.parts(schema) if "items" in part]
            return [fault for index, item in enumerate(value) if items
                    for fault in self.unnamed({"anyOf": items}, item, f"{path}[{index}]")]
        if not isinstance(value, dict):
            return []
        found, parts = [], list(self.parts(schema))
        for key, member in value.items():
            named = [part["properties"][key] for part in parts if key in part.get("properties", {})]
            if named:
                found += self.unnamed({"anyOf": named}, member, f"{path}.{key}")
            elif not any("additionalProperties" in part for part in parts):
                found.append(f"{path}.{key}")
        return found

    def members(self, schema, path="", seen=()):
        """The path of each member that a schema names at any depth, its schema, and whether it must be there."""
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            if name not in seen:
                yield from self.members(self.names[name], name, (*seen, name))
            return
        for name, member in schema.get("properties", {}).items():
            yield f"{path}.{name}", (member, name in schema.get("required", []))
            yield from self.members(member, f"{path}.{name}", seen)
        if isinstance(schema.get("items"), dict):
            yield from self.members(schema["items"], f"{path}[]", seen)
        for word in ("allOf", "anyOf", "oneOf"):
            for part in schema.get(word, []):
                yield from self.members(part, path, seen)

    def parts(self, schema):
        """The schema and all that it is made of, but for its members' own."""
        if "$ref" in schema:
            yield from self.parts(self.names[schema["$ref"].rsplit("/", 1)[1]])
            return
        yield schema
        for word in ("allOf", "anyOf", "oneOf"):
            for part in schema.get(word, []):
                yield from self.parts(part)
        for word in ("then", "else"):
            if word in schema:
                yield from self.parts(schema[word])


def expanded(text):
    """A text of the vectors, whose parts may be repetitions."""
    if isinstance(text, str):
        return text
    return "".join(
        part if isinstance(part, str) else "".join(
            part["repeat"].replace("#", str(number)) for number in range(part["times"]))
        for part in text)


def parsed(text):
    """A text as a strict reader of JSON (RFC 8259) has it; ValueError where it is none, or has a name twice."""
    def no_constant(word):
        raise ValueError(f"{word} is not JSON")

    def members(pairs):
        if len(dict(pairs)) < len(pairs):
            raise ValueError("two members of one name")
        return dict(pairs)

    return json.loads(text, parse_constant=no_constant, object_pairs_hook=members)


class OpenAPI:
    """`openapi.yaml`: which operation a request is of, and what is not described of an answer to it."""

    def __init__(self, document=None):
        self.document = document or load("openapi.yaml")
        self.schemas = Schemas()

    def resolve(self, node):
        while "$ref" in node and node["$ref"].startswith("#/"):
            target = self.document
            for key in node["$ref"][2:].split("/"):
                target = target[key]
            node = target
        return node

    def operations(self):
        """Path, method and what stands there, in order."""
        for path, item in self.document["paths"].items():
            for method, operation in self.resolve(item).items():
                yield path, method, operation

    def find(self, method, path):
        """The template of a path, its operation, and what the path has for its parameters. Words win over names."""
        segments = path.split("/")
        candidates = []
        for template, item in self.document["paths"].items():
            parts = template.split("/")
            pairs = list(zip(parts, segments))
            if len(parts) == len(segments) and all(part == segment or part[:1] == "{" and "}." not in part and
                                                   part[-1] == "}" for part, segment in pairs):
                values = {part[1:-1]: segment for part, segment in pairs if part[:1] == "{"}
                candidates.append((len(values), template, self.resolve(item), values))
        _, template, item, values = min(candidates, key=lambda candidate: candidate[0], default=(0, None, {}, {}))
        return template, item.get(method.lower().replace("head", "get")), values

    def answer_faults(self, method, path, status, content_type, body):
        """What of an answer is not described: its status, its type, its form, or one of its members."""
        template, operation, _ = self.find(method, path)
        if operation is None:
            return [f"{method} {path} is not described"]
        if str(status) not in operation["responses"]:
            return [f"{method} {template} does not describe {status}: {body[:200]!r}"]
        content = self.resolve(operation["responses"][str(status)]).get("content")
        kind = (content_type or "").split(";")[0]
        if not content or not body:
            fault = f"{method} {template} {status}: only one of answer and description has a body"
            return [fault] if content or body else []
        if kind not in content:
            return [f"{method} {template} {status} does not describe {content_type}"]
        if not kind.endswith("json"):
            return []
        schema, value = inner(content[kind]["schema"]), parsed(body.decode())
        found = self.schemas.faults_of(schema, value) + self.schemas.unnamed(schema, value)
        return [f"{method} {template} {status}: {fault}" for fault in found]


def inner(schema):
    """A schema whose references into schemas.yaml are within it."""
    return json.loads(json.dumps(schema).replace("schemas.yaml#", "#"))
