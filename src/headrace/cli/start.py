"""The entry point of the `headrace` command, which loads the rest of it."""

import signal

from headrace.cli.streams import discard_unwritable_output, open_closed_streams


def run() -> None:
    """Run the command line.

    While it is loaded there is nothing to clean up: Ctrl-C ends the process without a traceback.
    `ended_by_signals` takes over when a command runs.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    open_closed_streams()
    from headrace.cli.main import main  # noqa: PLC0415 - it loads the command line

    try:
        main()
    finally:
        discard_unwritable_output()
