"""How this program is called, for texts that name a command to run next."""

import shlex
import shutil
import sys
from pathlib import Path

from headrace.base.settings import Settings

NAME = "headrace"


def program_name(called: str, search_path: str | None = None) -> str:
    """Return the name of the program, or its path where the shell would not find the name.

    `called` is the path of the running program, and `search_path` the value of PATH, by default
    that of the environment. Anything but an installed program is called by its name.
    """
    if Path(called).name != NAME:
        return NAME
    found = shutil.which(NAME, path=search_path)
    is_found = found is not None and Path(found).resolve() == Path(called).resolve()
    return NAME if is_found else called


def command_line(*words: str, settings: Settings) -> str:
    """Return a command with the options that make it reach the same service and data."""
    defaults = Settings()
    options = {"--data": "data_dir", "--host": "host", "--port": "port"}
    changed = [
        word
        for option, name in options.items()
        if getattr(settings, name) != getattr(defaults, name)
        for word in (option, str(getattr(settings, name)))
    ]
    return shlex.join((program_name(sys.argv[0]), *words, *changed))
