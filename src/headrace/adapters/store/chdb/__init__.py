"""The embedded store, chDB; used by the engine process alone."""
