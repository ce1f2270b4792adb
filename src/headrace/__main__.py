"""`python -m headrace` is the headrace command."""

from headrace.cli.start import run

run()
