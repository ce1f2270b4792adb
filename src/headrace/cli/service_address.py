"""Where a service answers, as far as its settings tell."""

from headrace.base.settings import Settings

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - a lookup, nothing is bound


def base_url(settings: Settings) -> str:
    """Return the address under which a service with these settings answers on this machine."""
    host = _WILDCARDS.get(settings.host, settings.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port or 'PORT'}"
