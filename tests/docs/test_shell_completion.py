"""The line of the guide completes commands in a real shell."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testing.service import clean_environment
from tests.docs.guides import GUIDES

LINES = dict(
    re.findall(
        r"^\| (\w+) \| `[^`]+` \| `([^`]*_HEADRACE_COMPLETE[^`]*)` \|$",
        (GUIDES / "command-line-queries.md").read_text(),
        re.MULTILINE,
    )
)


def run(shell: str, script: str) -> str:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed on this machine")
    environment = clean_environment()
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        [program, "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("headrace we", "website"),
        ("headrace website u", "update"),
        ("headrace key create --scope track:", "track:events"),
        ("headrace export - --fo", "--format"),
    ],
    ids=["command", "command of a group", "value", "option"],
)
def test_line_of_the_guide_completes_in_bash(typed: str, completed: str) -> None:
    words = typed.split()
    script = (
        f"{LINES['Bash']}\nCOMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}\n"
        '_headrace_completion headrace\nprintf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert run("bash", script) == f"{completed}\n"


def test_line_of_the_guide_prints_the_script_of_each_shell() -> None:
    assert list(LINES) == ["Bash", "Zsh", "fish"]
    for line in LINES.values():
        (printed,) = re.findall(r"_HEADRACE_COMPLETE=\w+ headrace", line)
        assert "_headrace_completion" in run("bash", printed)


@pytest.mark.parametrize(
    "typed",
    [
        "website list --data ar",
        "serve --data ar",
        "import --website web_1 ar",
        "export ar",
        "subject-access ar",
        "query ar",
        "restore ar",
    ],
)
def test_shell_completes_names_of_files_where_a_command_takes_one(typed: str) -> None:
    variables = f"COMP_WORDS='headrace {typed}' COMP_CWORD={len(typed.split())}"
    assert run("bash", f"{variables} _HEADRACE_COMPLETE=bash_complete headrace") == "file,ar\n"
