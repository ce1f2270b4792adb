"""What every layer may use: errors, time, settings, logs, metrics."""
