"""Where things stand in the data directory and in the directory of a running service."""

STORE_DIRECTORY = "store"
LOG_DIRECTORY = "log"
LEDGER_FILE = "ledger.sqlite"
ENGINE_SOCKET = "engine.socket"
QUARANTINE_DIRECTORY = "quarantine"
