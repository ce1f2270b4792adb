"""Where all selects of a machine meet: turns, shared runs, kept answers."""
