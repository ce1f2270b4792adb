"""Writing Markdown, and turning the Markdown of the reference into HTML.

Only what the reference uses: headings, paragraphs, lists, tables, fenced code, and within lines
code, bold and links. A test holds it to a complete renderer on the whole reference.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

_HEADING = re.compile(r"(#{1,4}) (.+)")
_ITEM = re.compile(r"(?:\*|\d+\.) +")
_INLINE = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*|\[([^\]]+)\]\(([^)]+)\)")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_ENDPOINT = re.compile(r"(GET|POST) (/.*)")
_STATUS = re.compile(r"[1-5]\d\d")
_JSON_TEXT = r"&quot;(?:\\&quot;|(?!&quot;).)*&quot;"
_JSON_TOKEN = re.compile(
    rf"(?P<key>{_JSON_TEXT}(?=:))|(?P<text>{_JSON_TEXT})"
    r"|(?P<number>(?<![\w.])-?\d[\d.e+]*|\b(?:true|false|null)\b)"
)


def write_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; cells may hold inline Markdown."""
    lines = (header, ["---"] * len(header), *rows)
    return "\n".join(f"| {' | '.join(map(_escape_cell, line))} |" for line in lines)


def write_code(text: object) -> str:
    """Write code within a line."""
    return f"`{text}`"


def write_block(language: str, text: str) -> str:
    """Write a block of code."""
    return f"```{language}\n{text}\n```"


def heading_id(text: str) -> str:
    """Return the anchor of a heading, as code hosts make it."""
    kept = re.sub(r"[^\w\- ]", "", text.lower())
    return kept.strip().replace(" ", "-")


def render_html(markdown: str) -> str:
    """Turn Markdown into HTML; everything that is not markup comes out escaped."""
    return "\n".join(_render_blocks(markdown.splitlines()))


def _render_blocks(lines: Sequence[str]) -> Iterator[str]:
    position = 0
    while position < len(lines):
        line = lines[position]
        if not line.strip():
            position += 1
            continue
        continues_block, render = _block_kind(line)
        end = position + 1
        while end < len(lines) and continues_block(lines[end]):
            end += 1
        yield render(lines[position:end])
        position = end + 1 if line.startswith("```") else end


ContinuesBlock = Callable[[str], bool]
Render = Callable[[Sequence[str]], str]


def _block_kind(line: str) -> tuple[ContinuesBlock, Render]:
    """Return, by a block's first line, which lines still belong to it and how it is rendered."""
    if line.startswith("```"):
        return lambda other: other != "```", _render_code
    if _HEADING.match(line):
        return lambda _other: False, _render_heading
    if line.startswith("|"):
        return lambda other: other.startswith("|"), _render_table
    if _ITEM.match(line):
        return lambda other: bool(other.strip()), _render_list
    return lambda other: bool(other.strip()), _render_paragraph


def _render_code(lines: Sequence[str]) -> str:
    language = lines[0].removeprefix("```")
    text = escape("\n".join(lines[1:]))
    colored = _JSON_TOKEN.sub(_color_token, text) if language == "json" else text
    return f'<pre><code class="language-{language}">{colored}\n</code></pre>'


def _color_token(token: re.Match[str]) -> str:
    return f'<span class="{token.lastgroup}">{token[0]}</span>'


def _render_heading(lines: Sequence[str]) -> str:
    hashes, _, text = lines[0].partition(" ")
    level = len(hashes)
    if endpoint := _ENDPOINT.fullmatch(text):
        method, path = endpoint[1], escape(endpoint[2])
        content = f'<span class="method {method.lower()}">{method}</span> <span>{path}</span>'
    else:
        content = render_inline(text)
    return f'<h{level} id="{heading_id(text)}">{content}</h{level}>'


def _render_table(lines: Sequence[str]) -> str:
    header, _, *rows = (_CELL_BORDER.split(line)[1:-1] for line in lines)
    header_html = "".join(f"<th>{render_inline(cell.strip())}</th>" for cell in header)
    body = "\n".join(f"<tr>{''.join(map(_render_cell, row))}</tr>" for row in rows)
    return (
        f'<div class="table"><table>\n<thead>\n<tr>{header_html}</tr>\n</thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _render_cell(cell: str) -> str:
    text = cell.strip().replace("\\|", "|")
    if _STATUS.fullmatch(text):
        return f'<td><span class="status of{text[0]}">{text}</span></td>'
    return f"<td>{render_inline(text)}</td>"


def _render_list(lines: Sequence[str]) -> str:
    tag = "ul" if lines[0].startswith("*") else "ol"
    items: list[list[str]] = []
    for line in lines:
        if match := _ITEM.match(line):
            items.append([line[match.end() :]])
        else:
            items[-1].append(line.strip())
    content = "\n".join(f"<li>{render_inline(chr(10).join(item))}</li>" for item in items)
    return f"<{tag}>\n{content}\n</{tag}>"


def _render_paragraph(lines: Sequence[str]) -> str:
    return f"<p>{render_inline(chr(10).join(lines))}</p>"


def render_inline(text: str) -> str:
    """Turn one line of Markdown into HTML."""
    rendered, position = "", 0
    for match in _INLINE.finditer(text):
        rendered += escape(text[position : match.start()])
        rendered += _render_span(match)
        position = match.end()
    return rendered + escape(text[position:])


def _render_span(match: re.Match[str]) -> str:
    code, bold, label, target = match.groups()
    if code is not None:
        return f"<code>{escape(code.replace(chr(10), ' '))}</code>"
    if bold is not None:
        return f"<strong>{render_inline(bold)}</strong>"
    return f'<a href="{escape(target)}">{render_inline(label)}</a>'


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
