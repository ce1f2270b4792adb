#!/bin/sh
# Run once by the image of PostgreSQL, on an empty volume: a role that owns one database and is
# nothing else, so that a password that leaks is not the server's.
set -eu
password_file=${PASSWORD_FILE:-/run/secrets/postgresql_password}
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" \
  --dbname postgres --set=password="$(cat "$password_file")" <<'SQL'
CREATE ROLE headrace LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE DATABASE headrace OWNER headrace;
REVOKE ALL ON DATABASE headrace, postgres, template1 FROM PUBLIC;
SQL
