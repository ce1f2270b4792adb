"""Converts the Markdown of the reference to HTML with markdown-it, and adds the page's markup.

Added to CommonMark and tables: anchors of headings, coloured JSON, and badges for methods and
statuses. Raw HTML in the text is escaped.
"""

import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from headrace.http.apidocs.markdown import heading_id

_ENDPOINT = re.compile(r"([A-Z]+) (/.*)")
_STATUS = re.compile(r"[1-5]\d\d")
_JSON_TEXT = r"&quot;(?:\\&quot;|(?!&quot;).)*&quot;"
_JSON_TOKEN = re.compile(
    rf"(?P<key>{_JSON_TEXT}(?=:))|(?P<text>{_JSON_TEXT})"
    r"|(?P<number>(?<![\w.])-?\d[\d.e+]*|\b(?:true|false|null)\b)"
)


def render_html(markdown: str) -> str:
    """Return the HTML of a Markdown text."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.core.ruler.push("decorate", _decorate)
    parser.add_render_rule("fence", _render_fence)
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _close_table)
    html: str = parser.render(markdown)
    return html


def _decorate(state: StateCore) -> None:
    """Set the anchors of headings, and replace endpoint titles and statuses by badges."""
    for token, content in pairwise(state.tokens):
        if token.type == "heading_open":
            token.attrSet("id", heading_id(content.content))
            if endpoint := _ENDPOINT.fullmatch(content.content):
                _replace(content, _endpoint_html(endpoint[1], endpoint[2]))
        elif token.type == "td_open" and _STATUS.fullmatch(content.content):
            status = content.content
            _replace(content, f'<span class="status of{status[0]}">{status}</span>')


def _endpoint_html(method: str, path: str) -> str:
    return f'<span class="method {method.lower()}">{method}</span> <span>{escape(path)}</span>'


def _replace(inline: Token, html: str) -> None:
    inline.children = [Token("html_inline", "", 0, content=html)]


def _render_fence(
    _renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    _env: EnvType,
) -> str:
    language, text = tokens[index].info, escape(tokens[index].content)
    colored = _JSON_TOKEN.sub(_color_token, text) if language == "json" else text
    return f'<pre><code class="language-{escape(language)}">{colored}</code></pre>\n'


def _color_token(token: re.Match[str]) -> str:
    return f'<span class="{token.lastgroup}">{token[0]}</span>'


def _open_table(*_arguments: object) -> str:
    return '<div class="table"><table>\n'


def _close_table(*_arguments: object) -> str:
    return "</table></div>\n"
