"""The entry point of the `headrace` command, which loads the rest of it."""

import signal


def run() -> None:
    """Run the command line.

    While it is loaded there is nothing to clean up: Ctrl-C ends the process without a traceback.
    `ended_by_signals` takes over when a command runs.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from headrace.cli.main import main  # noqa: PLC0415 - it loads the command line

    main()
