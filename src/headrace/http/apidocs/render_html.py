"""The page at /docs: the reference as self-contained HTML without scripts."""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from headrace.http.apidocs.render_markdown import write_reference

Document = Mapping[str, Any]

_SECTION = re.compile(r"(?=^<h2 )", re.MULTILINE)
_ARTICLE = re.compile(
    r"^<h3 [^>]*><span class=\"method.*?(?=^<h[23] |\Z)", re.MULTILINE | re.DOTALL
)
_STATUSES = '<div class="table">'
_TITLE = re.compile(r'^<h([23]) id="([^"]+)">(.*)</h\1>$', re.MULTILINE)


def write_page(document: Document) -> str:
    """Write the page of an OpenAPI document."""
    # Imported by the first request for the page: it adds 30 ms to the start of a worker.
    from headrace.http.apidocs.markdown_to_html import render_html  # noqa: PLC0415

    text = render_html(write_reference(document))
    info = document["info"]
    return Template(_read("page.html")).substitute(
        title=escape(info["title"]),
        version=escape(info["version"]),
        summary=escape(info["summary"]),
        style=_style(),
        contents=_contents(text),
        text=_sections(text),
    )


def content_security_policy() -> str:
    """Return the page's Content-Security-Policy: its inline style sheet and icon, nothing else."""
    digest = b64encode(sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _sections(text: str) -> str:
    """Wrap chapters into sections, and endpoints into articles."""
    parts = (part for part in _SECTION.split(text) if part)
    return "\n".join(
        f"<section>\n{_ARTICLE.sub(_article, part).strip()}\n</section>" for part in parts
    )


def _article(match: re.Match[str]) -> str:
    text, table, statuses = match[0].strip().rpartition(_STATUSES)
    folded = f"<details>\n<summary>All responses</summary>\n{table}{statuses}\n</details>"
    return f"<article>\n{text}{folded}\n</article>\n"


def _contents(text: str) -> str:
    return "<ul>\n" + "\n".join(_content_items(text)) + "\n</ul>"


def _content_items(text: str) -> Iterator[str]:
    for level, anchor, title in _TITLE.findall(text):
        kind = ' class="chapter"' if level == "2" else ""
        yield f'<li><a{kind} href="#{anchor}">{title}</a></li>'


def _style() -> str:
    return _read("page.css")


def _read(name: str) -> str:
    return (files("headrace.http.apidocs") / "page" / name).read_text()
