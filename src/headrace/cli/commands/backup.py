"""`headrace backup` and `headrace restore`."""

import sys
from pathlib import Path

import click

from headrace.base.clock import SystemClock
from headrace.base.settings import data_path, load_settings
from headrace.base.telemetry import configure_logging
from headrace.cli.options import data_options, make_private_directory
from headrace.cli.output import format_iso_timestamp, print_json
from headrace.wiring.backup import back_up, restore

_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("backup")
@click.argument("file", type=_FILE)
@data_options
def backup_command(file: Path, data: str | None, as_json: bool) -> None:
    """Write everything that is kept into one file, while the service runs or not.

    What was acknowledged before the call is in it. The file must not exist yet.
    """
    configure_logging("warning", process="backup")
    made = format_iso_timestamp(SystemClock().now_ms())
    line = ProgressLine("Backing up")
    manifest = back_up(load_settings({"data_dir": data}), file, made=made, progress=line.show)
    line.clear()
    size = file.stat().st_size
    if as_json:
        print_json(
            {"file": str(file), "bytes": size, "data_bytes": manifest.bytes, "made": manifest.made}
        )
    else:
        click.echo(
            f"Backed up {format_bytes(manifest.bytes)} of data into {file}, "
            f"which has {format_bytes(size)}."
        )


@click.command("restore")
@click.argument("file", type=_FILE)
@data_options
def restore_command(file: Path, data: str | None, as_json: bool) -> None:
    """Unpack a backup into the data directory, which must be empty or not there yet."""
    configure_logging("warning", process="restore")
    settings = load_settings({"data_dir": data})
    make_private_directory(data_path(settings))
    line = ProgressLine("Restoring")
    manifest = restore(settings, file, progress=line.show)
    line.clear()
    if as_json:
        print_json({"data": settings.data_dir, "data_bytes": manifest.bytes, "made": manifest.made})
    else:
        click.echo(
            f"Restored {format_bytes(manifest.bytes)} of data, as of {manifest.made}, into "
            f"{settings.data_dir}."
        )


class ProgressLine:
    """One line on a terminal that is written over and over; nothing where there is no terminal."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._is_shown = sys.stderr.isatty()
        self._percent = -1

    def show(self, done: int, total: int) -> None:
        """Show how much is done, when another hundredth is."""
        percent = done * 100 // total if total else 100
        if self._is_shown and percent != self._percent:
            self._percent = percent
            text = f"{self._doing}: {format_bytes(done)} of {format_bytes(total)} ({percent} %)"
            click.echo(f"\r{text:<60}", nl=False, err=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._is_shown:
            click.echo(f"\r{'':<60}\r", nl=False, err=True)


def format_bytes(size: int) -> str:
    """Return a number of bytes for people."""
    scaled, unit = float(size), 0
    while scaled >= 1000 and unit < len(_UNITS) - 1:
        scaled, unit = scaled / 1000, unit + 1
    return f"{scaled:.1f} {_UNITS[unit]}" if unit else f"{size} bytes"
