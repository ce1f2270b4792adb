"""`python -m chaos.powercut.daemon`: the process of a recording disk, until it is unmounted.

It prints `ready` when the disk is mounted, reads commands from standard input, a line each (`cut`,
`cut write COUNT`, `cut flush COUNT`, `resume`, `ignore-flushes`), and prints what is pending when
the power is cut.
"""

import argparse
import sys
import threading
from pathlib import Path

import msgspec

from chaos.powercut.fuse import mount, serve
from chaos.powercut.leftovers import unmount_lazily
from chaos.powercut.recording_image import CutPoint, RecordingImage


def main() -> None:
    """Mount the disk and serve it."""
    arguments = _arguments()
    image = RecordingImage(current=arguments.current, durable=arguments.durable)
    descriptor = mount(arguments.mount)
    threading.Thread(target=_obey, args=(image, arguments.mount), daemon=True).start()
    threading.Thread(target=_report_cut, args=(image,), daemon=True).start()
    print("ready", flush=True)
    serve(descriptor, image)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("mount", "current", "durable"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    return parser.parse_args()


def _obey(image: RecordingImage, directory: Path) -> None:
    """Read commands. At the end of them the run is dead, so nothing of the disk may be left."""
    _read_commands(image)
    image.resume()
    unmount_lazily(directory)


def _read_commands(image: RecordingImage) -> None:
    for line in sys.stdin:
        match line.split():
            case ["cut"]:
                image.cut()
            case ["cut", point, count]:
                image.cut_at(CutPoint(point), int(count))
            case ["ignore-flushes"]:
                image.ignore_flushes()
            case ["resume"]:
                image.resume()
            case _:
                raise ValueError(line)


def _report_cut(image: RecordingImage) -> None:
    pending = image.wait_for_cut()
    print(msgspec.json.encode(pending).decode(), flush=True)


if __name__ == "__main__":
    main()
