"""`headrace backup` and `headrace restore`."""

from pathlib import Path

import click

from headrace.base.clock import SystemClock
from headrace.base.settings import data_path, load_settings
from headrace.base.telemetry import configure_logging
from headrace.cli.options import data_options, make_private_directory
from headrace.cli.output import format_bytes, format_iso_timestamp, print_json
from headrace.cli.progress import ProgressLine
from headrace.wiring.backup import back_up, restore

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("backup")
@click.argument("file", type=_FILE)
@data_options
def backup_command(file: Path, data: str | None, as_json: bool) -> None:
    """Back up the data directory to one file, whether the service runs or not.

    The backup contains every event that was acknowledged before the command started. FILE must not
    exist.
    """
    configure_logging("warning", process="backup")
    made = format_iso_timestamp(SystemClock().now_ms())
    settings = load_settings({"data_dir": data})
    with ProgressLine("Backing up", format_amount=format_bytes) as line:
        manifest = back_up(settings, file, made=made, progress=line.show)
    size = file.stat().st_size
    if as_json:
        print_json(
            {"file": str(file), "bytes": size, "data_bytes": manifest.bytes, "made": manifest.made}
        )
    else:
        click.echo(
            f"Backed up {format_bytes(manifest.bytes)} of data into {file}, "
            f"a file of {format_bytes(size)}."
        )


@click.command("restore")
@click.argument("file", type=_FILE)
@data_options
def restore_command(file: Path, data: str | None, as_json: bool) -> None:
    """Restore a backup into the data directory, which must be empty or missing."""
    configure_logging("warning", process="restore")
    settings = load_settings({"data_dir": data})
    make_private_directory(data_path(settings))
    with ProgressLine("Restoring", format_amount=format_bytes) as line:
        manifest = restore(settings, file, progress=line.show)
    if as_json:
        print_json({"data": settings.data_dir, "data_bytes": manifest.bytes, "made": manifest.made})
    else:
        click.echo(
            f"Restored {format_bytes(manifest.bytes)} of data as of {manifest.made} into "
            f"{settings.data_dir}."
        )
