"""`headrace backup` and `headrace restore`."""

from collections.abc import Sequence
from pathlib import Path

import click

from headrace.base.clock import SystemClock
from headrace.base.datetime_text import format_iso
from headrace.base.logs import configure_logging
from headrace.base.settings import load_settings
from headrace.cli.directory import operator_name
from headrace.cli.options import data_options
from headrace.cli.output import format_bytes, print_json
from headrace.cli.progress import ProgressLine
from headrace.wiring.commands.backup import back_up, restore

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("backup")
@click.argument("file", type=_FILE)
@click.option("--partial", is_flag=True, help="Leave out what cannot be read of the event logs.")
@data_options
def backup_command(file: Path, partial: bool, data: str | None, as_json: bool) -> None:
    """Back up the data directory to one file, whether the service runs or not.

    The backup contains every event that was acknowledged before the command started. The command
    fails where a log cannot be read, unless the backup may be partial. FILE must not exist.
    """
    configure_logging("warning", process="backup")
    made = format_iso(SystemClock().now_ms())
    settings = load_settings({"data_dir": data})
    with ProgressLine("Backing up", format_amount=format_bytes) as line:
        manifest = back_up(settings, file, made=made, partial=partial, progress=line.show)
    size = file.stat().st_size
    _warn_if_partial(manifest.unreadable_logs)
    if as_json:
        print_json(
            {
                "file": str(file),
                "bytes": size,
                "data_bytes": manifest.bytes,
                "made": manifest.made,
                "unreadable_logs": manifest.unreadable_logs,
            }
        )
    else:
        click.echo(
            f"Backed up {format_bytes(manifest.bytes)} of data into {file}, "
            f"a file of {format_bytes(size)}."
        )


@click.command("restore")
@click.argument("file", type=_FILE)
@click.option(
    "--erasures",
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Erasures to apply beside those in the folder `erasures` of the data directory: another "
    "data directory, its folder `erasures`, or a file of `headrace erasures export`.",
)
@data_options
def restore_command(file: Path, erasures: Path | None, data: str | None, as_json: bool) -> None:
    """Restore a backup into the data directory, which must be empty or missing.

    It may have a folder `erasures`: what was erased after the backup was made is then erased from
    the restored data, before the command ends.
    """
    configure_logging("warning", process="restore")
    settings = load_settings({"data_dir": data})
    with ProgressLine("Restoring", format_amount=format_bytes) as line:
        manifest, applied = restore(
            settings, file, by=operator_name(), erasures=erasures, progress=line.show
        )
    _warn_if_partial(manifest.unreadable_logs)
    if applied is None:
        click.echo(
            "headrace: erasures that were made after the backup are not known: give them by "
            "--erasures, or restore into a directory with the folder erasures of the lost one",
            err=True,
        )
    if as_json:
        print_json(
            {
                "data": settings.data_dir,
                "data_bytes": manifest.bytes,
                "made": manifest.made,
                "unreadable_logs": manifest.unreadable_logs,
                "erasures": applied or 0,
            }
        )
    else:
        click.echo(
            f"Restored {format_bytes(manifest.bytes)} of data as of {manifest.made} into "
            f"{settings.data_dir}."
        )


def _warn_if_partial(unreadable_logs: Sequence[str]) -> None:
    if unreadable_logs:
        click.echo(
            "headrace: the backup is partial: it lacks acknowledged events of the log "
            f"{', '.join(unreadable_logs)}, which could not be read",
            err=True,
        )
