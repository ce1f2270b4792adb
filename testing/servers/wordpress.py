"""A real WordPress on loopback: PHP's own web server, and a MariaDB of its own.

Debian's packages have all of it. Where they are missing, tests skip with a message; with CI=true
they fail instead.
"""

import getpass
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import requests

from testing.servers.ports import free_port
from testing.servers.shared_state import Server, missing

PASSWORD = "correct horse battery staple"
PHP = ("php", "-d", "opcache.enable_cli=1", "-d", "display_errors=stderr")
_SOURCE = Path("/usr/share/wordpress")
_PROGRAMS = ("php", "mariadbd", "mariadb-install-db")
_PACKAGES = "wordpress, wordpress-theme-twentytwentythree, php-cli, php-mysql, mariadb-server-core"
_TIMEOUT_S = 120
_DATABASE_OPTIONS = (
    "--skip-networking",
    "--skip-grant-tables",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=8M",
)
_CONFIGURATION = """<?php
define( 'DB_NAME', 'wordpress' );
define( 'DB_USER', 'wordpress' );
define( 'DB_PASSWORD', '' );
define( 'DB_HOST', 'localhost:{socket}' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'WP_HOME', '{url}' );
define( 'WP_SITEURL', '{url}' );
define( 'WP_HTTP_BLOCK_EXTERNAL', true ); // other hosts than this one
define( 'DISABLE_WP_CRON', true ); // tests run it themselves
{settings}
$table_prefix = 'wp_';
defined( 'ABSPATH' ) || define( 'ABSPATH', __DIR__ . '/' );
require_once ABSPATH . 'wp-settings.php';
"""
_CREATE_DATABASE = "(new mysqli( 'localhost', '', '', '', 0, '{socket}' ))->query( '{sql}' );"
_INSTALL = f"""
define( 'WP_INSTALLING', true );
function wp_mail() {{ return true; }}
require 'wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';
wp_install( 'A shop', 'admin', 'admin@shop.example', true, '', '{PASSWORD}' );
update_option( 'permalink_structure', '/%postname%/' );
flush_rewrite_rules();
"""


class WordPress:
    """A WordPress with its files in `root`, not yet started. It has no plugins."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="headrace-wordpress-"))
        self.root = self._home / "site"
        self._socket = self._home / "database.socket"
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        shutil.copytree(_SOURCE, self.root, ignore_dangling_symlinks=True)
        self._database = Server(self._make_database(), self._has_database, self._home)
        command = [*PHP, "-S", f"127.0.0.1:{port}", "-t", str(self.root)]
        self._pages = Server(command, self._has_pages, self._home)

    def _make_database(self) -> list[str]:
        data = self._home / "data"
        options = ["--no-defaults", f"--datadir={data}", f"--user={getpass.getuser()}"]
        installation = ["--auth-root-authentication-method=normal", "--skip-test-db"]
        _run(["mariadb-install-db", *options, *installation], self._home)
        return ["mariadbd", *options, f"--socket={self._socket}", *_DATABASE_OPTIONS]

    def _has_database(self) -> bool:
        with closing(socket.socket(socket.AF_UNIX)) as connection:
            return connection.connect_ex(str(self._socket)) == 0

    def _has_pages(self) -> bool:
        try:
            with requests.Session() as session:
                session.trust_env = False
                return session.get(self.url, timeout=_TIMEOUT_S).status_code == 200
        except requests.ConnectionError:
            return False

    def write(self, name: str, text: str) -> None:
        """Write a file of the site."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def start(self, settings: str) -> None:
        """Install WordPress with these lines in its configuration, and serve it."""
        configuration = _CONFIGURATION.format(socket=self._socket, url=self.url, settings=settings)
        (self.root / "wp-config.php").write_text(configuration)
        self._database.start()
        sql = "CREATE DATABASE wordpress"
        self.run(_CREATE_DATABASE.format(socket=self._socket, sql=sql))
        self.run(_INSTALL)
        self._pages.start()

    def run(self, code: str, *arguments: str) -> str:
        """Run PHP in the folder of the site and return what it prints; `$argv` from 1 on."""
        return _run([*PHP, "-r", code, "--", *arguments], self.root)

    def run_in_site(self, code: str, *arguments: str) -> str:
        """Run PHP in WordPress, with its plugins, and return what it prints."""
        return self.run(f"require 'wp-load.php'; {code}", *arguments)

    def remove(self) -> None:
        """Stop everything, and delete its files."""
        self._pages.kill()
        self._database.remove()


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PHP " not in done.stderr, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wordpress() -> Iterator[WordPress]:
    """A WordPress that the tests of a module share, not yet started."""
    if not _SOURCE.is_dir() or not all(map(shutil.which, _PROGRAMS)):
        missing(f"WordPress (Debian: {_PACKAGES})")
    made = WordPress()
    try:
        yield made
    finally:
        made.remove()
