"""Stands where tests have PyYAML installed and a production environment has not: see `rich.py`.

uvicorn imports it where it can.
"""

raise ImportError("not in requirements/runtime.lock")
