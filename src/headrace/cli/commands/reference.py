"""`headrace reference`: writes the reference pages from the tables that the code runs on."""

from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click
import msgspec

from headrace.base.errors import OperatorError
from headrace.base.metrics import METRICS
from headrace.base.settings import Settings, setting_specs
from headrace.http.apidocs.markdown import heading_id, write_code, write_table
from headrace.http.apidocs.openapi import make_document
from headrace.http.apidocs.render_markdown import (
    guide_chapters,
    write_chapter,
    write_endpoints,
    write_schemas,
)

Document = Mapping[str, Any]

NOTICE = "<!-- Written by `headrace reference`: change the code, then run `make docs`. -->"

API_CHAPTERS = ("Credentials", "Sending", "Answers")
CHAPTER_PAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tables.md": ("What is stored", ("From an event to a row", "Tables and columns")),
    "query.md": ("Queries", ("Query language",)),
    "analyses.md": (
        "Funnels, retention and standard queries",
        ("Funnels", "Retention", "Standard queries"),
    ),
}
CONTENTS: Mapping[str, str] = {
    "api.md": "every endpoint with its fields, answers and errors; credentials; limits",
    "query.md": "what a query may say and what it means: aggregates, operators, limits",
    "analyses.md": "funnels: who took each of several steps in time; retention: who came back when;"
    " standard queries: the questions of a dashboard",
    "tables.md": "tables and columns, and how an event becomes a row",
    "settings.md": "every setting with its variable, option and default",
    "commands.md": "the command line",
    "metrics.md": "every metric and what to do when it rises",
    "openapi.json": "the API for programs",
}


@click.command("reference", hidden=True)
@click.option("--check", is_flag=True, help="Write nothing; fail when a page is not up to date.")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.pass_context
def reference_command(context: click.Context, directory: Path, check: bool) -> None:
    """Write the reference pages into DIRECTORY."""
    pages = make_pages(context.find_root().command)
    outdated = [name for name, text in pages.items() if _read(directory / name) != text]
    if check and outdated:
        raise OperatorError(
            f"not up to date in {directory}: {', '.join(outdated)}; run `make docs`"
        )
    if check:
        return
    directory.mkdir(parents=True, exist_ok=True)
    for name in outdated:
        (directory / name).write_text(pages[name], encoding="utf-8")
        click.echo(f"wrote {directory / name}")


def make_pages(program: click.Command) -> Mapping[str, str]:
    """Return the text of every page by its file name."""
    document = make_document(Settings())
    return {
        "README.md": _page("Reference", [_contents()]),
        "api.md": _page("API", _api_parts(document)),
        **{
            name: _page(title, _chapter_parts(document, chapters))
            for name, (title, chapters) in CHAPTER_PAGES.items()
        },
        "settings.md": _page("Settings", _settings_parts()),
        "commands.md": _page("Command line", _command_parts(program)),
        "metrics.md": _page("Metrics", _metrics_parts()),
        "openapi.json": _json(document),
    }


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _page(title: str, parts: Sequence[str] | Iterator[str]) -> str:
    return "\n\n".join((NOTICE, f"# {title}", *parts)) + "\n"


def _json(document: Document) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _contents() -> str:
    return "\n".join(f"* [{name}]({name}): {text}" for name, text in CONTENTS.items())


def _api_parts(document: Document) -> Iterator[str]:
    yield (
        "All figures are those of the default [settings](settings.md). A running service shows its"
        " own at `/docs` and `/openapi.json`."
    )
    yield from map(_link_chapters, write_endpoints(document))
    yield from _chapter_parts(document, API_CHAPTERS)
    yield from write_schemas(document)


def _link_chapters(text: str) -> str:
    """Let links to chapters lead to the pages that these have in the docs."""
    for page, (_, chapters) in CHAPTER_PAGES.items():
        for anchor in map(heading_id, chapters):
            text = text.replace(f"(#{anchor})", f"({page}#{anchor})")
    return text


def _chapter_parts(document: Document, titles: Sequence[str]) -> Iterator[str]:
    for chapter in guide_chapters(document):
        if chapter["name"] in titles:
            yield from write_chapter(chapter)


def _settings_parts() -> Iterator[str]:
    yield (
        "Every setting is an environment variable and an option of `headrace serve`; the option"
        " wins. Lists are separated by commas. A value that cannot be used keeps the service from"
        " starting, with a sentence that says why. A variable that is almost one of these is named"
        " in the log, and by other commands on standard error."
    )
    yield write_table(
        ("Variable", "Option", "Default", "Meaning"),
        (
            (write_code(row.variable), write_code(row.option), _default(row.default), row.help)
            for row in setting_specs()
        ),
    )


def _default(value: object) -> str:
    return "none" if value in ("", ()) else write_code(value)


def _metrics_parts() -> Iterator[str]:
    yield (
        "`GET /metrics` gives these in Prometheus' text format, summed over all processes of the"
        " service. Labels come from closed sets: never a website, an address or the name of an"
        " event."
    )
    yield write_table(
        ("Metric", "Kind", "Labels", "Meaning", "When it rises"),
        (
            (
                write_code(metric.name),
                metric.kind.value,
                ", ".join(map(write_code, metric.labels)),
                metric.help,
                metric.runbook,
            )
            for metric in METRICS
        ),
    )


def _command_parts(program: click.Command) -> Iterator[str]:
    yield (
        "Commands never prompt. Those for websites, keys and organizations work on the"
        " data directory whether the service runs or not. With `--json` they print one line for"
        " programs: `create` prints the new object (`key create` prints `key`, the secret, which is"
        " shown only then, and `id`), `list` an array of objects without secrets. What cannot be"
        " done is one sentence on standard error and exit code 1. Ctrl-C, SIGTERM and SIGHUP end a"
        " command after its cleanup, with the exit status of the signal: in a shell, 130 for Ctrl-C"
        " and 143 for SIGTERM."
    )
    yield from _describe(program, click.Context(program, info_name=program.name))


def _describe(command: click.Command, context: click.Context) -> Iterator[str]:
    """Describe a command, or those of a group that are not hidden."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _describe(inner, click.Context(inner, context, info_name=name))
        return
    yield f"## {context.command_path}"
    yield cleandoc(command.help or "")
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    if {one.name for one in options} == {row.name for row in setting_specs()}:
        yield "Its options are the [settings](settings.md)."
    else:
        yield _usage(command, context)
        yield write_table(("Option", "Meaning"), (_option_row(one, context) for one in options))


def _usage(command: click.Command, context: click.Context) -> str:
    return write_code(f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}")


def _option_row(option: click.Option, context: click.Context) -> tuple[str, str]:
    left, meaning = option.get_help_record(context) or ("", "")
    return write_code(left), meaning
