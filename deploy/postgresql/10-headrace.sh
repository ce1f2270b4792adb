#!/bin/sh
# The PostgreSQL image runs this once, on an empty volume. It creates a role that owns one database
# and has no other rights, so that a leaked password does not give access to the server.
set -eu
password_file=${PASSWORD_FILE:-/run/secrets/postgresql_password}
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" \
  --dbname postgres --set=password="$(cat "$password_file")" <<'SQL'
CREATE ROLE headrace LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE DATABASE headrace OWNER headrace;
REVOKE ALL ON DATABASE headrace, postgres, template1 FROM PUBLIC;
SQL
