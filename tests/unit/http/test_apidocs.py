"""The OpenAPI document and the page generated from it."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt

from headrace.base.settings import Settings
from headrace.http.apidocs.field_docs import FIELD_DESCRIPTIONS
from headrace.http.apidocs.guide import format_size, read_overview
from headrace.http.apidocs.markdown import heading_id
from headrace.http.apidocs.markdown_to_html import render_html
from headrace.http.apidocs.openapi import make_document
from headrace.http.apidocs.openapi_responses import SUCCESS_STATUSES
from headrace.http.apidocs.operation_docs import OPERATION_DOCS
from headrace.http.apidocs.render_html import content_security_policy, write_page
from headrace.http.apidocs.render_markdown import write_reference
from headrace.http.apidocs.schema_rules import SCHEMA_OVERRIDES
from headrace.http.apidocs.schemas import make_schemas
from headrace.http.endpoint_operations import OPERATIONS
from headrace.http.endpoint_spec import Operation
from headrace.http.endpoints import ENDPOINTS, TRACKER_ENDPOINTS
from headrace.http.responses import IngestionError, QueryError

JSON_TEXT = msgspec.json.encode(make_document(Settings()))
DOCUMENT: dict[str, Any] = msgspec.json.decode(JSON_TEXT)
TEXT = write_reference(DOCUMENT)


@cache
def page() -> str:
    """Return the page. To write it takes a second, in each process that collects these tests."""
    return write_page(DOCUMENT)


def operations() -> Iterator[dict[str, Any]]:
    for methods in DOCUMENT["paths"].values():
        yield from methods.values()


def test_every_method_of_every_endpoint_is_described() -> None:
    assert set(OPERATION_DOCS) == set(OPERATIONS)
    assert {path: list(methods) for path, methods in DOCUMENT["paths"].items()} == {
        spec.path: [one.lower() for one in spec.methods if one not in {"HEAD", "OPTIONS"}]
        for spec in ENDPOINTS
    }


def test_names_of_operations_are_unique() -> None:
    names = Counter(operation["operationId"] for operation in operations())

    assert [name for name, count in names.items() if count > 1] == []


def test_array_has_the_limit_of_its_endpoint() -> None:
    limits = {"/track": 10_000, "/vitals": 10_000, "/errors": 10_000, "/batch": 10_000}
    limits["/engagement"] = 100

    assert {path: array_schema(path)["maxItems"] for path in limits} == limits


def array_schema(path: str) -> dict[str, Any]:
    content = DOCUMENT["paths"][path]["post"]["requestBody"]["content"]
    array: dict[str, Any] = content["application/json"]["schema"]["anyOf"][0]
    return array


def test_every_reference_resolves() -> None:
    references = re.findall(r'"\$ref":"#/([^"]+)"', JSON_TEXT.decode())

    assert references
    for reference in references:
        target = DOCUMENT
        for key in reference.split("/"):
            target = target[key]


@pytest.mark.parametrize(
    ("item", "branches"),
    [
        ({"field": "path", "operator": "eq", "value": "/"}, 1),
        ({"field": "path", "operator": "eq"}, 0),
        ({"field": "path", "operator": "is_set"}, 1),
        ({"field": "path", "operator": "is_set", "value": None}, 1),
        ({"field": "path", "operator": "is_set", "value": "/"}, 0),
        ({"or": []}, 1),
        ({"and": [], "field": "path", "operator": "is_set"}, 2),
    ],
)
def test_filter_that_the_service_takes_matches_one_branch_of_its_schema(
    item: dict[str, Any], branches: int
) -> None:
    def matches(branch: dict[str, Any]) -> bool:
        rules = branch.get("properties", {}).items()
        return set(branch["required"]) <= set(item) and all(
            item.get(name) in rule.get("enum", [None]) for name, rule in rules
        )

    assert sum(map(matches, make_schemas()["Filter"]["oneOf"])) == branches


def test_limits_of_administration_are_those_of_the_directory() -> None:
    schemas = make_schemas()
    days = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 36_500}, {"type": "null"}]}
    scopes = ["track:events", "read:data", "manage:data", "manage:config"]

    assert {
        name: limits(rules) for name, rules in schemas["RetentionBody"]["properties"].items()
    } == dict.fromkeys(("days", "events", "errors", "performance"), days)
    assert limits(schemas["NewKey"]["properties"]["scopes"]) == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/Scope"},
        "minItems": 1,
    }
    assert sorted(schemas["Scope"]["enum"]) == sorted(scopes)
    assert [
        limits(schemas[name]["properties"]["name"])
        for name in ("OrganizationBody", "NewWebsite", "WebsitePatch")
    ] == [{"type": "string", "minLength": 1}] * 3


def limits(rules: dict[str, Any]) -> dict[str, Any]:
    return {name: rule for name, rule in rules.items() if name != "description"}


def test_every_response_says_what_its_data_is() -> None:
    data = {
        name: limits(schema["properties"]["data"])
        for name, schema in make_schemas().items()
        if "data" in schema.get("properties", ())
    }

    assert data
    assert [name for name, rules in data.items() if rules in ({}, {"type": "array"})] == []


def test_only_readers_of_saved_queries_learn_that_the_organization_is_gone() -> None:
    names = {
        operation["operationId"]
        for operation in operations()
        for response in operation["responses"].values()
        for content in response.get("content", {}).values()
        for example in content.get("examples", {}).values()
        if example["value"]["code"] == "WEBSITE_MISSING_ORGANIZATION"
    }

    assert {name for name in names if name.startswith("saved")} == {"saved_answer", "saved_show"}


ITEMS = ("CustomEvent", "WebVital", "ErrorReport", "PageView", "Engagement", "Identification")
"""They share the descriptions of fields that not all of them have."""


def test_every_field_is_described_and_nothing_else_is() -> None:
    fields = {
        (name, field)
        for name, schema in make_schemas().items()
        for field in schema.get("properties", ())
    }
    described = {
        (name, field)
        for name, descriptions in FIELD_DESCRIPTIONS.items()
        for field in descriptions
        if name not in ITEMS
    }
    assert described <= fields
    assert set(SCHEMA_OVERRIDES) <= fields


def test_every_status_that_an_endpoint_can_give_is_described() -> None:
    statuses = {spec["operationId"]: " ".join(spec["responses"]) for spec in operations()}

    ingestion = "200 400 401 403 404 405 408 413 415 500 503"
    assert statuses == {
        **dict.fromkeys(("track", "vitals", "errors", "batch", "page"), ingestion),
        **dict.fromkeys(("engagement", "identify"), ingestion),
        **dict.fromkeys(
            ("query", "funnel", "retention", "standard"),
            "200 400 401 403 404 405 408 413 415 422 429 500 503 504",
        ),
        **dict.fromkeys(
            ("values", "schema"), "200 400 401 403 404 405 408 413 422 429 500 503 504"
        ),
        "sql": "200 400 401 403 404 405 408 413 415 429 500 503",
        "live": "200 400 401 403 404 405 408 413 429 500 503",
        "saved": "200 201 400 401 403 404 405 408 413 415 429 500 503",
        "saved_list": "200 400 401 403 404 405 408 413 429 500 503",
        "saved_answer": "200 304 400 401 403 404 405 408 413 422 429 500 503 504",
        "export": "200 400 401 403 404 405 408 413 500 503",
        "subject_access": "200 400 401 403 404 405 408 413 415 429 500 503",
        "erasures": "200 202 400 401 403 404 405 408 413 415 429 500 503",
        "erasure": "200 401 403 404 405 408 413 500 503",
        "session": "200 400 401 403 405 408 413 415 429 500 503",
        "storage": "200 400 401 403 404 405 408 413 429 500 503",
        **dict.fromkeys(
            ("admin_organizations", "admin_websites", "admin_keys"),
            "201 400 401 403 405 408 413 415 429 500 503",
        ),
        **dict.fromkeys(
            ("admin_organization", "admin_website"),
            "200 400 401 403 404 405 408 413 415 429 500 503",
        ),
        **dict.fromkeys(
            ("saved_show", "saved_delete"), "200 400 401 403 404 405 408 413 429 500 503"
        ),
        "erasures_list": "200 400 401 403 404 405 408 413 500 503",
        "session_show": "200 401 405 408 413 500 503",
        "session_end": "204 405 408 413 500 503",
        **dict.fromkeys(
            (
                *("admin_organizations_list", "admin_websites_list", "admin_keys_list"),
                "admin_quarantine",
            ),
            "200 401 403 405 408 413 500 503",
        ),
        **dict.fromkeys(
            ("admin_organization_show", "admin_website_show", "admin_key", "admin_entry"),
            "200 401 403 404 405 408 413 500 503",
        ),
        **dict.fromkeys(
            ("admin_organization_delete", "admin_website_delete", "admin_key_revoke"),
            "200 401 403 404 405 408 413 429 500 503",
        ),
        "admin_retry": "200 400 401 403 404 405 408 413 429 500 503",
        "admin_audit": "200 400 401 403 405 408 413 500 503",
        "ready": "200 503 405 500",
        **dict.fromkeys(("health", "metrics", "openapi", "docs"), "200 405 500"),
        **dict.fromkeys((spec.name for spec in TRACKER_ENDPOINTS), "200 405 500"),
        **dict.fromkeys(
            ("tracker_pinned", "tracker_extras_pinned", "tracker_details_pinned"), "200 404 405 500"
        ),
    }


def test_every_call_that_counts_has_the_headers_of_its_rate() -> None:
    documented = {
        operation["operationId"]
        for operation in operations()
        if "X-RateLimit-Limit" in operation["responses"].get("429", {"headers": ()})["headers"]
    }

    assert documented == {
        *("query", "funnel", "retention", "standard", "sql", "values", "schema"),
        *("saved", "saved_show", "saved_delete", "saved_list", "saved_answer", "live", "storage"),
        *("erasures", "subject_access"),
        *("admin_organizations", "admin_organization", "admin_websites", "admin_website"),
        *("admin_organization_delete", "admin_website_delete", "admin_key_revoke"),
        *("admin_keys", "admin_retry"),
    }


def named(operation: Operation) -> str:
    return operation.name


@pytest.mark.parametrize(
    "operation", [one for one in OPERATIONS if OPERATION_DOCS[one].item], ids=named
)
def test_body_example_is_valid(operation: Operation) -> None:
    item, example = OPERATION_DOCS[operation].item, OPERATION_DOCS[operation].example

    msgspec.convert(example, list[item] if isinstance(example, list) else item)  # type: ignore[valid-type]  # made at run time


@pytest.mark.parametrize(
    "operation", [one for one in OPERATIONS if OPERATION_DOCS[one].response], ids=named
)
def test_response_example_matches_its_schema(operation: Operation) -> None:
    for status in SUCCESS_STATUSES.get(operation, (200,)):
        doc = OPERATION_DOCS[operation].response_of(status)
        assert doc is not None
        reply: Any = doc.type

        converted = msgspec.json.decode(msgspec.json.encode(doc.example), type=reply)

        assert msgspec.json.decode(msgspec.json.encode(converted)) == doc.example


def test_error_example_matches_its_schema() -> None:
    for operation in operations():
        below_v1 = operation["tags"][0] in {"Queries", "Management", "Administration"}
        envelope = QueryError if below_v1 else IngestionError
        for response in operation["responses"].values():
            for content in response.get("content", {}).values():
                for example in content.get("examples", {}).values():
                    msgspec.convert(example["value"], envelope)


def test_overview_names_the_paths_that_answer_head() -> None:
    readable = [spec for spec in ENDPOINTS if "GET" in spec.methods]
    answered = {spec.path for spec in readable if "HEAD" in spec.methods}
    outside = {spec.path for spec in readable if not spec.path.startswith("/v1/")}
    assert answered == {*outside, "/v1/query/schema"}
    sentence = "`GET` paths outside `/v1`, and `/v1/query/schema`, also answer `HEAD`."
    assert sentence in " ".join(read_overview().split())


def test_text_has_no_unfilled_placeholder() -> None:
    assert "$" not in re.sub(r"`[^`]*`|```.*?```", "", TEXT, flags=re.DOTALL)


def test_anchors_are_unique_and_every_link_resolves() -> None:
    anchors = Counter(re.findall(r' id="([^"]+)"', page()))
    links = set(re.findall(r'href="#([^"]+)"', page()))

    assert [anchor for anchor, count in anchors.items() if count > 1] == []
    assert links - set(anchors) == set()


def test_every_operation_is_an_article_with_its_method_as_a_badge() -> None:
    badge = (
        r'<article>\n<h3 [^>]*><span class="method (\w+)">[A-Z]+</span> <span>([^<]+)</span></h3>'
    )

    assert sorted((path, method) for method, path in re.findall(badge, page())) == sorted(
        (path, method) for path, methods in DOCUMENT["paths"].items() for method in methods
    )


def test_policy_allows_the_style_of_the_page_and_no_script() -> None:
    assert content_security_policy().startswith("default-src 'none'; style-src 'sha256-")
    assert page().count("<style>") == 1
    assert "<script" not in page()
    assert "style=" not in page()


class Outline(HTMLParser):
    """The text and tags of a page, without styling."""

    DECORATION = frozenset({"span", "div"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self._text = ""
        self.feed(html)

    @property
    def lines(self) -> list[str]:
        return [line.strip() for line in self._text.splitlines() if line.strip()]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.DECORATION:
            self._text += f"\n<{tag} {dict(attrs).get('href', '')}>\n"

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.DECORATION:
            self._text += f"\n</{tag}>\n"

    def handle_data(self, data: str) -> None:
        self._text += data


def test_anchors_colours_and_badges_keep_the_text() -> None:
    plain = MarkdownIt("commonmark").enable("table").render(TEXT)

    assert Outline(render_html(TEXT)).lines == Outline(plain).lines


def test_markup_in_a_text_comes_out_escaped() -> None:
    html = render_html("a <b> & `<i>` **<u>** [<s>](x?a&b)\n\n| <a> |\n| --- |\n| `a\\|b` <b> |")

    assert html == (
        "<p>a &lt;b&gt; &amp; <code>&lt;i&gt;</code> <strong>&lt;u&gt;</strong>"
        ' <a href="x?a&amp;b">&lt;s&gt;</a></p>\n'
        '<div class="table"><table>\n<thead>\n<tr>\n<th>&lt;a&gt;</th>\n</tr>\n</thead>\n'
        "<tbody>\n<tr>\n<td><code>a|b</code> &lt;b&gt;</td>\n</tr>\n</tbody>\n</table></div>\n"
    )


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("POST /track", "post-track"),
        ("What `count` counts", "what-count-counts"),
        ("From an event to a row", "from-an-event-to-a-row"),
    ],
)
def test_anchor_matches_code_hosts(title: str, anchor: str) -> None:
    assert heading_id(title) == anchor


@pytest.mark.parametrize(
    ("size", "text"),
    [(10_485_760, "10 MiB"), (1024, "1 KiB"), (1000, "1,000 bytes"), (2_147_483_648, "2 GiB")],
)
def test_sizes_are_written_in_the_largest_unit_that_divides_them(size: int, text: str) -> None:
    assert format_size(size) == text
