"""Writes an OpenAPI document as Markdown, for the page at /docs and for the reference pages."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import Any

import msgspec

from headrace.http.apidocs.descriptions.description import TAGS
from headrace.http.apidocs.markdown import heading_id, write_block, write_code, write_table
from headrace.http.apidocs.schema_rules import SCHEMA_PREFIX

Document = Mapping[str, Any]
Schema = Mapping[str, Any]

_NULL: Schema = {"type": "null"}
_TEXT_WIDTH = 100
_JSON_WIDTH = 88


def write_reference(document: Document) -> str:
    """Write the overview, the endpoints, the chapters and the schemas."""
    return "\n\n".join(
        (
            *write_endpoints(document),
            *(part for tag in guide_chapters(document) for part in write_chapter(tag)),
            *write_schemas(document),
        )
    )


def guide_chapters(document: Document) -> Sequence[Document]:
    """Return the tags that are chapters of the guide, without operations."""
    return [tag for tag in document["tags"] if tag["name"] not in TAGS]


def write_chapter(tag: Document) -> Iterator[str]:
    """Write one chapter under a second-level heading."""
    yield f"## {tag['name']}"
    yield tag["description"]


def write_endpoints(document: Document) -> Iterator[str]:
    """Write the overview and all endpoints, grouped by tag."""
    yield "## Overview"
    yield document["info"]["description"]
    for name, text in TAGS.items():
        yield f"## {name}"
        yield text
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if operation["tags"] == [name]:
                    yield from _write_operation(method.upper(), path, operation)


def write_schemas(document: Document) -> Iterator[str]:
    """Write the fields of all bodies."""
    yield "## Schemas"
    yield (
        "A field that is not required may be absent or null; those of"
        " [WebsitePatch](#websitepatch) are absent or have a value."
    )
    for name, schema in document["components"]["schemas"].items():
        yield f"### {name}"
        yield schema["description"]
        if "enum" in schema:
            yield f"One of {_list_values(schema['enum'])}."
        else:
            yield write_table(("Field", "Type", "Required", "Meaning"), _field_rows(schema))


def _write_operation(method: str, path: str, operation: Document) -> Iterator[str]:
    yield f"### {method} {path}"
    yield fill(
        f"**{operation['summary']}.** {operation['description']}",
        _TEXT_WIDTH,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if parameters := operation.get("parameters"):
        yield write_table(("Parameter", "In", "Meaning"), map(_parameter_row, parameters))
    if body := operation.get("requestBody"):
        yield from _write_example("Body", body["content"]["application/json"])
    successes = _successes_of(operation)
    for status, content in successes.items():
        title = "Response" if len(successes) == 1 else f"Response with status {status}"
        yield from _write_example(title, content)
    rows = dict.fromkeys(_response_rows(operation["responses"]))  # several errors look the same
    yield write_table(("Status", "Code", "Message"), rows)


def _write_example(title: str, content: Document) -> Iterator[str]:
    if "example" in content:
        yield f"{title}: {_body_type(content['schema'])}"
        yield write_block("json", _format_json(content["example"]))


def _body_type(schema: Schema) -> str:
    """Name the type of a body: one item, or one item and an array of items."""
    if "anyOf" not in schema:
        return _type_name(schema)
    many, one = schema["anyOf"]
    return f"{_type_name(many)}, at most {many['maxItems']:,}, or one {_type_name(one)}"


def _parameter_row(parameter: Document) -> Sequence[str]:
    rules = "".join(f"; {rule}" for rule in _constraints(parameter["schema"]))
    needed = "; required" if parameter.get("required") else ""
    meaning = f"{parameter['description']}{needed}{rules}"
    return write_code(parameter["name"]), parameter["in"], meaning


def _response_rows(responses: Document) -> Iterator[tuple[str, str, str]]:
    for status, response in responses.items():
        examples = response.get("content", {}).get("application/json", {}).get("examples")
        if examples is None:
            yield status, "", response["description"]
            continue
        for example in examples.values():
            yield status, write_code(example["value"]["code"]), example["summary"]


def _field_rows(schema: Schema) -> Iterator[Sequence[str]]:
    for name, rules in schema["properties"].items():
        is_required = name in schema["required"]
        or_null = " or null" if is_required and _NULL in rules.get("anyOf", ()) else ""
        meaning = "; ".join((rules["description"], *_constraints(rules)))
        yield write_code(name), _type_name(rules) + or_null, "yes" if is_required else "", meaning


def _type_name(schema: Schema) -> str:
    """Name a schema's type. Ignores null, which the column "Required" shows."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(SCHEMA_PREFIX)
        return f"[{name}](#{heading_id(name)})"
    if "anyOf" in schema:
        return _join_alternatives([_type_name(one) for one in schema["anyOf"] if one != _NULL])
    if "enum" in schema or "const" in schema:
        return _join_alternatives(
            [write_code(_compact(value)) for value in _allowed_values(schema)]
        )
    kind = schema.get("type", "anything")
    items = schema.get("items")
    return f"array of {_type_name(items)}" if kind == "array" and items else kind


def _join_alternatives(kinds: Sequence[str]) -> str:
    named = [kind for kind in dict.fromkeys(kinds) if kind != "integer" or "number" not in kinds]
    return "anything" if {"object", "string"} <= set(named) else " or ".join(named)


def _constraints(schema: Schema) -> Iterator[str]:
    """Write the constraints of a schema beyond its type."""
    for one in schema.get("anyOf", (schema,)):
        for (least, most), unit in _BOUNDS.items():
            yield from _bounds(one.get(least), one.get(most), unit)
    if schema.get("default"):
        yield f"default {write_code(schema['default'])}"


_BOUNDS: Mapping[tuple[str, str], str] = {
    ("minLength", "maxLength"): " characters",
    ("minItems", "maxItems"): " items",
    ("minimum", "maximum"): "",
}


def _bounds(least: int | None, most: int | None, unit: str) -> Iterator[str]:
    if least is not None and most is not None:
        yield f"{least:,} to {most:,}{unit}"
    elif most is not None:
        yield f"at most {most:,}{unit}"
    elif least is not None:
        yield f"at least {least:,}{unit.removesuffix('s') if least == 1 else unit}"


def _allowed_values(schema: Schema) -> Sequence[Any]:
    values: Sequence[Any] = schema["enum"] if "enum" in schema else [schema["const"]]
    return values


def _list_values(values: Sequence[Any]) -> str:
    return ", ".join(map(write_code, values))


def _format_json(value: Any, indent: str = "") -> str:  # noqa: ANN401 - plain JSON
    """Format JSON with each object and array on one line if it fits."""
    compact, deeper = _compact(value), f"{indent}  "
    if len(indent) + len(compact) <= _JSON_WIDTH:
        return compact
    if compact.startswith("{"):
        parts = [f"{_compact(key)}: {_format_json(part, deeper)}" for key, part in value.items()]
    elif compact.startswith("["):
        parts = [_format_json(part, deeper) for part in value]
    else:
        return compact
    inner = ",\n".join(deeper + part for part in parts)
    return f"{compact[0]}\n{inner}\n{indent}{compact[-1]}"


def _compact(value: Any) -> str:  # noqa: ANN401 - plain JSON
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def _successes_of(operation: Document) -> Mapping[str, Document]:
    """Return the JSON contents of successes by status; of several that are equal, the first."""
    found: dict[str, Document] = {}
    for status, response in operation["responses"].items():
        content = response.get("content", {}).get("application/json")
        if status.startswith("2") and content and content not in found.values():
            found[status] = content
    return found
