"""Runs the commands that query a service, in processes of their own."""

import re
import subprocess

from testing.service import HEADRACE, Service, clean_environment

TIMEOUT_S = 60


def run_command(service: Service, website: str, *arguments: str) -> tuple[int, str, str]:
    """Run a command with a key; return its exit code, output with times masked, and errors."""
    variables = {
        "HEADRACE_URL": service.url,
        "HEADRACE_WEBSITE_ID": website,
        "HEADRACE_API_KEY": service.key("read:data", "manage:data").secret,
    }
    done = subprocess.run(
        [HEADRACE, *arguments],
        capture_output=True,
        env=clean_environment(variables),
        timeout=TIMEOUT_S,
        check=False,
    )
    out = re.sub(r"\d+\.\d ms", "N ms", done.stdout.decode())
    return done.returncode, out, done.stderr.decode()
