"""The `headrace` command and the table of its sub-commands.

A sub-command is imported when it is called: `headrace serve` imports no database library, and
`headrace website list` no engine.
"""

import contextlib
import errno
import os
import sys
from codecs import lookup
from collections.abc import Generator, Mapping
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NamedTuple

import click

from headrace import __version__
from headrace.base.build import build_digest
from headrace.base.closest_match import closest_match
from headrace.base.errors import OperatorError, system_reason
from headrace.base.settings import suggest_setting_names
from headrace.cli.interruption import ended_by_signals, leave_signals_to_parent


class LazyCommand(NamedTuple):
    """A sub-command as `module:attribute` below `headrace.cli`, and its line in the help.

    Without help it is hidden.
    """

    target: str
    help: str | None


COMMANDS: Mapping[str, LazyCommand] = {
    "serve": LazyCommand("serve:serve_command", "Accept events and answer queries."),
    "init": LazyCommand(
        "commands.init:initialize_command",
        "Create a first website and API keys, and print example requests.",
    ),
    "query": LazyCommand("query.command:query_command", "Run a query on a running service."),
    "funnel": LazyCommand(
        "query.analyses:funnel_command", "Show who takes each step, and how long."
    ),
    "retention": LazyCommand("query.analyses:retention_command", "Show who comes back, by cohort."),
    "values": LazyCommand(
        "query.analyses:values_command", "Show the most frequent values of a column."
    ),
    "saved": LazyCommand("query.saved:saved", "List, show, run and delete saved queries."),
    "website": LazyCommand(
        "commands.administration.website:website", "Create, list, change and delete websites."
    ),
    "key": LazyCommand("commands.administration.key:key", "Create, list and revoke API keys."),
    "organization": LazyCommand(
        "commands.administration.organization:organization",
        "Create, list, rename and delete organizations.",
    ),
    "audit": LazyCommand("commands.administration.audit:audit_command", "List who changed what."),
    "quarantine": LazyCommand(
        "commands.quarantine:quarantine",
        "Show entries that could not be stored, and retry them.",
    ),
    "backup": LazyCommand(
        "commands.backup:backup_command",
        "Back up the data directory to one file.",
    ),
    "restore": LazyCommand(
        "commands.backup:restore_command",
        "Restore a backup into an empty data directory.",
    ),
    "export": LazyCommand(
        "commands.rows.export:export_command",
        "Write all rows of a website to a file, while the service runs or not.",
    ),
    "import": LazyCommand(
        "commands.rows.import_:import_command",
        "Store the events of files, each once, while the service runs or not.",
    ),
    "erase": LazyCommand(
        "commands.rows.erase:erase_command",
        "Erase rows of a website for good, while the service runs or not.",
    ),
    "erasures": LazyCommand(
        "commands.rows.erase:erasures",
        "List and export erasures, and forget a machine that is gone.",
    ),
    "storage": LazyCommand(
        "commands.rows.storage:storage_command",
        "Show what is stored of each website and table.",
    ),
    "prune": LazyCommand(
        "commands.rows.storage:prune_command",
        "Delete the rows that have expired, as the service does every day.",
    ),
    "subject-access": LazyCommand(
        "commands.rows.subject_access:subject_access_command",
        "Show everything that is stored of a visitor, session, profile or event.",
    ),
    "migrate-store": LazyCommand(
        "commands.migrate_store:migrate_store_command",
        "Move all rows to ClickHouse or back, while the service runs.",
    ),
    "verify": LazyCommand(
        "commands.verify:verify_command",
        "Check the integrity of a data directory.",
    ),
    "reference": LazyCommand(
        "commands.reference:reference_command",
        "Write the reference pages of the documentation.",
    ),
    "sign-in": LazyCommand(
        "commands.administration.sign_in:sign_in_command",
        "Print a link that signs in to the page.",
    ),
    "worker": LazyCommand("serve:worker_command", None),
    "engine": LazyCommand("serve:engine_command", None),
}


_COMMANDS_WITH_A_LOG = frozenset({"serve", "worker", "engine"})
"""`serve` logs variables that look like settings, once for all of its processes."""


_PRIVATE_UMASK = 0o077
"""Only the owner can read what a command or the service creates, SQLite's and chDB's files too."""


_ERRORS_OF_PATHS = frozenset(
    {errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EROFS}
)
"""What is wrong with a path, which the operator chose. A missing file may be our fault."""


class CommandFailed(click.ClickException):
    """An error that the operator can correct: one sentence on standard error, exit code 1."""

    def show(self, file: Any = None) -> None:  # noqa: ANN401 - as click declares it
        """Print the sentence."""
        click.echo(f"headrace: {self.message}", file=file, err=True)


class LazyGroup(click.Group):
    """A group that imports a sub-command when it is called, but not to print its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the sub-commands that are not hidden."""
        return [name for name, command in COMMANDS.items() if command.help is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a sub-command and return it, or None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].target.partition(":")
        command: click.Command = getattr(import_module(f"headrace.cli.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the sub-command of a name; suggest the closest one for a name that is unknown."""
        name = args[0]
        closest = None if name in COMMANDS else closest_match(name, self.list_commands(ctx))
        if closest is not None:
            ctx.fail(f"No such command {name!r} (did you mean {closest!r}?).")
        if name in COMMANDS and COMMANDS[name].help is None:
            leave_signals_to_parent()
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of sub-commands from `COMMANDS`."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, COMMANDS[name].help or "") for name in self.list_commands(ctx)]
            )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and print the help or the version where they ask for it."""
        with _one_sentence():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run a sub-command; print one sentence for an error that the operator can correct."""
        with ended_by_signals(), _one_sentence():
            result: object = super().invoke(ctx)
            sys.stdout.flush()
            return result


@contextlib.contextmanager
def _one_sentence() -> Generator[None]:
    """Translate what the operator can correct to `CommandFailed`."""
    try:
        yield
    except click.NoSuchOption as error:
        raise _explained(error) from None
    except OperatorError as error:
        raise CommandFailed(str(error)) from error
    except PermissionError as error:
        raise CommandFailed(
            f"cannot open {error.filename or 'a file'}: permission denied; run this as the "
            "user who runs the service"
        ) from error
    except OSError as error:
        if error.errno in _ERRORS_OF_PATHS and error.filename and error.strerror:
            reason = system_reason(error)
            raise CommandFailed(f"cannot open {error.filename}: {reason}") from error
        if error.errno != errno.ENOSPC:
            raise
        target = error.filename or "the output"
        raise CommandFailed(f"cannot write {target}: no space left on the device") from error


def _explained(error: click.NoSuchOption) -> click.NoSuchOption:
    """Return the error; for an option before its command, which click does not know, say so."""
    if error.ctx is None or not isinstance(error.ctx.command, click.Group):
        return error
    if not error.option_name.startswith("--"):
        return error
    own = [name for parameter in error.ctx.command.get_params(error.ctx) for name in parameter.opts]
    if closest_match(error.option_name, own) is not None:
        return error
    message = f"No such option {error.option_name!r}. Options come after the command."
    return click.NoSuchOption(error.option_name, message, ctx=error.ctx)


def _print_version(context: click.Context, _option: click.Parameter, is_given: bool) -> None:
    if is_given and not context.resilient_parsing:
        click.echo(f"headrace, version {__version__} (build {build_digest()})")
        context.exit()


@click.group("headrace", cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and a digest of the installed code, and exit.",
)
@click.pass_context
def main(context: click.Context) -> None:
    """Accept analytics events without losing one, and answer queries exactly."""
    os.umask(_PRIVATE_UMASK)
    _escape_what_the_locale_lacks()
    if context.invoked_subcommand not in _COMMANDS_WITH_A_LOG:
        _warn_of_misspelled_settings()


def _warn_of_misspelled_settings() -> None:
    """Say on standard error which variables look like settings and have no effect."""
    for variable, suggestion in suggest_setting_names(os.environ).items():
        click.echo(
            f"headrace: {variable} is no setting and has no effect (did you mean {suggestion}?)",
            err=True,
        )


def _escape_what_the_locale_lacks() -> None:
    """Print characters that the encoding of the locale does not have as `\\u2615`.

    Names come from anywhere. UTF-8 keeps its own rule, which writes file names of any bytes.
    """
    output = sys.stdout
    if isinstance(output, TextIOWrapper) and lookup(output.encoding).name != "utf-8":
        output.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
