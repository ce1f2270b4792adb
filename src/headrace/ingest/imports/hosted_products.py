"""The mappings of events that PostHog, Mixpanel and Amplitude export.

What is no column stays in the properties as it is, but for addresses and User-Agents: they become
country and browser where these are not in the export, and are forgotten.
"""

from collections.abc import Callable, Container, Mapping
from typing import Any, Final, cast

from headrace.ingest.imports.decoder import InvalidLine
from headrace.ingest.imports.mapped_events import (
    PAGE_VIEW,
    Fields,
    MapEvent,
    MappedEvent,
    is_number,
    object_of,
    profile_id_of,
    size_of,
    text_of,
    text_or_number,
    visitor_with,
)
from headrace.ingest.imports.visitors import FindVisitor
from headrace.model.imports import ImportFormat
from headrace.model.log_records import Visitor

_DIRECT: Final = "$direct"
"""What these products write for a visit without a referrer."""

_AGENTS: Final = ("$raw_user_agent", "$user_agent", "$useragent", "user_agent")
_FORGOTTEN: Final = ("$ip", "ip", *_AGENTS)
_FORGOTTEN_OF_PROFILES: Final = (
    *_FORGOTTEN,
    *(f"$initial_{name.removeprefix('$')}" for name in _FORGOTTEN),
)
_PROFILE_CHANGES: Final = ("$set", "$set_once")
"""Objects within the properties of PostHog: what the event changes in the profile, with copies of
the properties."""

_MILLISECONDS_FROM: Final = 100_000_000_000
"""Mixpanel's times are seconds, or milliseconds in newer exports: this is 1973 or the year 5138."""


def _posthog(find_visitor: FindVisitor) -> MapEvent:
    def map_event(event: Mapping[str, Any]) -> MappedEvent:
        properties = dict(object_of(event.get("properties")))
        found = _find_visitor(find_visitor, properties)
        visitor = visitor_with(
            country=text_of(properties.get("$geoip_country_code")) or found.country,
            region=text_of(properties.get("$geoip_subdivision_1_name")) or found.region,
            city=text_of(properties.get("$geoip_city_name")) or found.city,
            browser_name=_browser_name(properties.get("$browser")) or found.browser_name,
            browser_version=_version(properties.get("$browser_version")) or found.browser_version,
            os_name=_os_name(properties.get("$os")) or found.os_name,
            os_version=_version(properties.get("$os_version")) or found.os_version,
            device_type=text_of(properties.get("$device_type")).lower() or found.device_type,
            is_bot=found.is_bot,
        )
        fields: Fields = {
            "name": _name(event.get("event"), "$pageview"),
            "timestamp": event.get("timestamp"),
            "anonymousId": event.get("distinct_id"),
            "profileId": profile_id_of(properties.get("$user_id")),
            **_page(properties, url="$current_url", path="$pathname"),
            "title": properties.get("title") or properties.get("$title"),
            "language": properties.get("$browser_language"),
            "timezone": properties.get("$timezone"),
            "properties": properties,
        }
        return MappedEvent(fields, _source_id("posthog", event.get("uuid")), visitor)

    return map_event


def _mixpanel(find_visitor: FindVisitor) -> MapEvent:
    def map_event(event: Mapping[str, Any]) -> MappedEvent:
        properties = dict(object_of(event.get("properties")))
        found = _find_visitor(find_visitor, properties)
        visitor = visitor_with(
            country=text_of(properties.get("mp_country_code")) or found.country,
            region=text_of(properties.get("$region")) or found.region,
            city=text_of(properties.get("$city")) or found.city,
            browser_name=_browser_name(properties.get("$browser")) or found.browser_name,
            browser_version=_version(properties.get("$browser_version")) or found.browser_version,
            os_name=_os_name(properties.get("$os")) or found.os_name,
            os_version=_version(properties.get("$os_version")) or found.os_version,
            device_type=found.device_type,
            is_bot=found.is_bot,
        )
        time, insert_id = properties.pop("time", None), properties.pop("$insert_id", None)
        distinct_id = text_or_number(properties.pop("distinct_id", None))
        is_seconds = is_number(time) and time < _MILLISECONDS_FROM
        # With the time, which the id of the row has, these are what Mixpanel itself compares.
        compared = (text_of(event.get("event")), text_of(distinct_id))
        fields: Fields = {
            "name": _name(event.get("event"), "$mp_web_page_view"),
            "timestamp": time * 1000 if is_seconds else time,
            "anonymousId": distinct_id,
            "profileId": profile_id_of(properties.get("$user_id")),
            **_page(properties, url="$current_url", path="$pathname"),
            "title": properties.get("current_page_title"),
            "properties": properties,
        }
        return MappedEvent(fields, _source_id("mixpanel", insert_id, *compared), visitor)

    return map_event


def _amplitude(find_visitor: FindVisitor) -> MapEvent:
    def map_event(event: Mapping[str, Any]) -> MappedEvent:
        properties = dict(object_of(event.get("event_properties")))
        user_properties = object_of(event.get("user_properties"))
        kept = {name: event[name] for name in _AMPLITUDE_KEPT if event.get(name) is not None}
        if user_properties:
            kept["user_properties"] = user_properties
        found = find_visitor(text_of(event.get("ip_address")), "")
        software = (text_of(event.get("os_name")), _version(event.get("os_version")))
        is_web = text_of(event.get("platform")).lower() == "web"
        browser, system = (software, ("", "")) if is_web else (("", ""), software)
        visitor = visitor_with(
            country=found.country,
            region=text_of(event.get("region")) or found.region,
            city=text_of(event.get("city")) or found.city,
            browser_name=_browser_name(browser[0]),
            browser_version=browser[1],
            os_name=_os_name(system[0]),
            os_version=system[1],
        )
        fields: Fields = {
            "name": _name(event.get("event_type"), "[Amplitude] Page Viewed"),
            "timestamp": event.get("event_time"),
            "anonymousId": text_or_number(event.get("device_id") or event.get("amplitude_id")),
            "profileId": profile_id_of(event.get("user_id")),
            "sessionId": _amplitude_session(event),
            "url": properties.pop("[Amplitude] Page Location", None)
            or properties.pop("[Amplitude] Page URL", None),
            "path": properties.pop("[Amplitude] Page Path", None),
            "title": properties.pop("[Amplitude] Page Title", None),
            "language": event.get("language"),
            "properties": {**kept, **properties},
        }
        source = event.get("uuid") or event.get("$insert_id")
        return MappedEvent(fields, _source_id("amplitude", source), visitor)

    return map_event


_AMPLITUDE_KEPT: Final = ("user_id", "country", "platform", "version_name", "device_type")
"""Fields beside the properties that are kept with them. `country` is a name and not a code."""


def _amplitude_session(event: Mapping[str, Any]) -> str | None:
    """Return a session id. Amplitude's is the start of the session, which devices can share."""
    session = event.get("session_id")
    if type(session) is not int or session < 0:
        return None
    return f"{event.get('amplitude_id') or event.get('device_id')}-{session}"


def _page(properties: Fields, *, url: str, path: str) -> Fields:
    """Move what belongs to the page and the session out of the properties."""
    referrer = properties.pop("$referrer", None)
    return {
        "url": properties.pop(url, None),
        "path": properties.pop(path, None),
        "referrer": None if referrer == _DIRECT else referrer,
        "sessionId": text_or_number(properties.pop("$session_id", None)),
        "screen_resolution": size_of(
            properties.get("$screen_width"), properties.get("$screen_height")
        ),
        "viewport_size": size_of(
            properties.get("$viewport_width"), properties.get("$viewport_height")
        ),
    }


def _find_visitor(find_visitor: FindVisitor, properties: Fields) -> Visitor:
    """Return what address and User-Agent say, and remove them from the properties."""
    forgotten = {name: text_of(properties.pop(name, None)) for name in _FORGOTTEN}
    for name in _PROFILE_CHANGES:
        if isinstance(changes := properties.get(name), dict):
            # Decoded JSON, whose keys are texts.
            properties[name] = _without(cast("Fields", changes), _FORGOTTEN_OF_PROFILES)
    address = forgotten["$ip"] or forgotten["ip"]
    agents = (forgotten[name] for name in _AGENTS)
    return find_visitor(address, next(filter(None, agents), ""))


def _without(values: Mapping[str, Any], names: Container[str]) -> Fields:
    return {name: value for name, value in values.items() if name not in names}


def _name(name: object, page_view: str) -> object:
    return PAGE_VIEW if name == page_view else name


def _version(value: object) -> str:
    return f"{value:.15g}" if is_number(value) else text_of(value)


_BROWSER_NAMES: Mapping[str, str] = {
    "Android Mobile": "Android",
    "Chrome Mobile": "Chrome",
    "Chrome Mobile WebView": "Chrome",
    "Chrome Mobile iOS": "Chrome",
    "Chrome WebView": "Chrome",
    "Chrome iOS": "Chrome",
    "Edge Mobile": "Edge",
    "Facebook Mobile": "Facebook",
    "Firefox Mobile": "Firefox",
    "Firefox iOS": "Firefox",
    "IE": "Internet Explorer",
    "Internet Explorer Mobile": "Internet Explorer",
    "Microsoft Edge": "Edge",
    "Mobile Safari": "Safari",
    "Opera Mobile": "Opera",
}
"""The names that the parser of User-Agents gives to the same browsers."""

_OS_NAMES: Mapping[str, str] = {
    "Chrome OS": "ChromeOS",
    "Mac OS": "macOS",
    "Mac OS X": "macOS",
    "android": "Android",
    "ios": "iOS",
    "mac": "macOS",
}


def _browser_name(value: object) -> str:
    return _BROWSER_NAMES.get(text_of(value), text_of(value))


def _os_name(value: object) -> str:
    return _OS_NAMES.get(text_of(value), text_of(value))


def _source_id(product: str, source_id: object, *others: str) -> bytes:
    """Return what identifies an event. `others` are fields that its id is unique together with."""
    if not source_id or not isinstance(source_id, str):
        raise InvalidLine("it has no id of the event")
    return "\0".join([product, source_id, *others]).encode(errors="surrogatepass")


MAPPINGS: Mapping[ImportFormat, Callable[[FindVisitor], MapEvent]] = {
    ImportFormat.POSTHOG: _posthog,
    ImportFormat.MIXPANEL: _mixpanel,
    ImportFormat.AMPLITUDE: _amplitude,
}
