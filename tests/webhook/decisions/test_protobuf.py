"""The checked-in messages, their source, the JSON Schema and the record agree."""

import re
from pathlib import Path

import jsonschema_rs
import orjson
import pytest

from webhook.decisions.sidecar.grpc import record_line
from webhook.decisions.wire import decisions_pb2 as pb

ROOT = Path(__file__).parent.parent.parent.parent
PROTO = ROOT / "webhook" / "decisions" / "wire" / "decisions.proto"
SCHEMA = ROOT / "docs" / "decision-record.schema.json"
GOLDEN = ROOT / "tests" / "golden" / "decisions"

_FIELD = re.compile(
    r"^\s*(?:(repeated|optional)\s+)?(map<[^>]*>|[\w.]+)\s+(\w+)\s*=\s*(\d+)"
    r'(?:\s*\[json_name\s*=\s*"(\w+)"\])?;'
)


def declared() -> dict[str, dict[str, tuple[int, str]]]:
    """Messages of the source: for each field its number and its name in JSON."""
    messages: dict[str, dict[str, tuple[int, str]]] = {}
    current = ""
    for line in PROTO.read_text().splitlines():
        if begun := re.match(r"message (\w+) \{", line):
            current = begun[1]
            messages[current] = {}
        elif found := _FIELD.match(line):
            json_name = found[5] or re.sub(r"_(\w)", lambda match: match[1].upper(), found[3])
            messages[current][found[3]] = (int(found[4]), json_name)
    return messages


def test_the_generated_messages_are_those_of_the_source() -> None:
    """Fails when decisions.proto was changed and decisions_pb2.py was not made again."""
    generated = {
        name: {field.name: (field.number, field.json_name) for field in message.fields}
        for name, message in pb.DESCRIPTOR.message_types_by_name.items()
    }
    assert generated == declared()


def golden_records() -> list[bytes]:
    return (GOLDEN / "client.ndjson").read_bytes().splitlines()[1:-1]


@pytest.mark.parametrize("line", golden_records())
def test_a_typed_record_arrives_as_the_same_json(line: bytes) -> None:
    """Empty fields that protobuf leaves out stay out; all others are equal."""
    from google.protobuf.json_format import Parse

    def solid(value: object) -> object:
        if isinstance(value, dict):
            return {
                key: solid(item)
                for key, item in value.items()
                if item not in ("", 0, [], {}) and not (item is False and key != "allowed")
            }
        return [solid(item) for item in value] if isinstance(value, list) else value

    message = Parse(line, pb.Record())
    assert solid(orjson.loads(record_line(message))) == solid(orjson.loads(line))


def test_the_schema_accepts_the_golden_records_and_knows_every_field() -> None:
    schema = orjson.loads(SCHEMA.read_bytes())
    validator = jsonschema_rs.validator_for(schema)
    for line in golden_records():
        validator.validate(orjson.loads(line))
    assert not validator.is_valid({**orjson.loads(golden_records()[0]), "verdict": "perhaps"})
    fields = {field.json_name for field in pb.Record.DESCRIPTOR.fields}
    assert schema["properties"].keys() == fields


def test_every_field_is_described() -> None:
    """docs/decisions.md names each field of the record in its table."""
    described = set(
        re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "decisions.md").read_text(), re.MULTILINE)
    )
    assert {field.json_name for field in pb.Record.DESCRIPTOR.fields} <= described
