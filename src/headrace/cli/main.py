"""The `headrace` command: its sub-commands by name, each loaded only when it is called.

So `headrace serve` does not carry a database library, and `headrace website list` no engine.
"""

import errno
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

from headrace import __version__
from headrace.base.closest_match import closest_match
from headrace.base.errors import OperatorError


class LazyCommand(NamedTuple):
    """Where a sub-command is, as module:attribute, and its line in the help; None hides it."""

    target: str
    help: str | None


COMMANDS: Mapping[str, LazyCommand] = {
    "serve": LazyCommand("headrace.cli.serve:serve_command", "Take in events and answer queries."),
    "init": LazyCommand(
        "headrace.cli.commands.init:initialize_command",
        "Make a first website and keys, and print calls to paste.",
    ),
    "query": LazyCommand("headrace.cli.query.command:query_command", "Ask a running service."),
    "website": LazyCommand(
        "headrace.cli.commands.website:website", "Create, list and delete websites."
    ),
    "key": LazyCommand("headrace.cli.commands.key:key", "Create, list and revoke API keys."),
    "organization": LazyCommand(
        "headrace.cli.commands.organization:organization", "Create, list and delete organizations."
    ),
    "quarantine": LazyCommand(
        "headrace.cli.commands.quarantine:quarantine",
        "Read what could not be stored, and try it again.",
    ),
    "backup": LazyCommand(
        "headrace.cli.commands.backup:backup_command",
        "Write everything that is kept into one file.",
    ),
    "restore": LazyCommand(
        "headrace.cli.commands.backup:restore_command",
        "Unpack a backup into an empty data directory.",
    ),
    "migrate-store": LazyCommand(
        "headrace.cli.commands.migrate_store:migrate_store_command",
        "Move all rows to ClickHouse, or back, while the service runs.",
    ),
    "verify": LazyCommand(
        "headrace.cli.commands.verify:verify_command",
        "Read everything that is kept and tell what is wrong.",
    ),
    "reference": LazyCommand(
        "headrace.cli.commands.reference:reference_command",
        "Write the reference pages of the docs.",
    ),
    "worker": LazyCommand("headrace.cli.serve:worker_command", None),
    "engine": LazyCommand("headrace.cli.serve:engine_command", None),
}


class CommandFailed(click.ClickException):
    """What an operator asked for cannot be done: one sentence on standard error, exit code 1."""

    def show(self, file: Any = None) -> None:  # noqa: ANN401 - as click declares it
        """Write the sentence."""
        click.echo(f"headrace: {self.message}", file=file, err=True)


class LazyGroup(click.Group):
    """A group that imports a sub-command when it is called, and not for the help of the group."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the sub-commands that are not hidden."""
        return [name for name, command in COMMANDS.items() if command.help is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a sub-command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the sub-command of a name; suggest the closest one for a name that is unknown."""
        name = args[0]
        closest = None if name in COMMANDS else closest_match(name, self.list_commands(ctx))
        if closest is not None:
            ctx.fail(f"No such command {name!r} (did you mean {closest!r}?).")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of sub-commands from the table."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, COMMANDS[name].help or "") for name in self.list_commands(ctx)]
            )

    def invoke(self, ctx: click.Context) -> object:
        """Run a sub-command; what the operator can mend ends it with one sentence, no traceback."""
        try:
            return super().invoke(ctx)
        except OperatorError as error:
            raise CommandFailed(str(error)) from error
        except PermissionError as error:
            raise CommandFailed(
                f"no permission for {error.filename}: run this as the user who runs the service"
            ) from error
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            destination = f"for {error.filename}" if error.filename else "where the output goes"
            raise CommandFailed(f"there is no room left {destination}") from error


@click.group("headrace", cls=LazyGroup)
@click.version_option(__version__, prog_name="headrace")
def main() -> None:
    """Take in analytics events and never lose one, and answer queries exactly."""


if __name__ == "__main__":
    main()
