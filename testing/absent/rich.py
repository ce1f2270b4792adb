"""Stands where tests have `rich` installed and a production environment has not.

structlog imports it where it can: a tenth of a second in each process of a service.
"""

raise ImportError("not in requirements/runtime.lock")
