"""What every layer may use: errors, time, settings, telemetry."""
