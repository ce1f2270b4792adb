"""`python -m millrace` is the millrace command."""

from millrace.cli.main import main

main()
