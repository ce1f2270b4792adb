"""The values that a data set is drawn from. A repeated value is drawn more often."""

from collections.abc import Mapping

COUNTRIES = (
    *("US", "DE", "GB", "FR", "IN", "BR", "CA", "NL", "ES", "IT", "PL", "JP", "AU", "SE", "MX"),
    *("CH", "AT", "BE", "PT", "DK", "NO", "FI", "IE", "CZ", "RO", "TR", "UA", "ZA", "KR", "SG"),
    *("ID", "PH", "VN", "TH", "MY", "AR", "CL", "CO", "PE", "EG", "NG", "KE", "MA", "IL", "AE"),
    *("SA", "GR", "HU", "BG", "HR", "SK", "SI", "LT", "LV", "EE", "NZ", "TW", "HK", "PK", "BD"),
)
BROWSERS = (*["Chrome"] * 11, *["Safari"] * 5, *["Edge"] * 2, *["Firefox"] * 2, "Opera")
SYSTEMS = (*["Windows"] * 7, *["Android"] * 6, *["iOS"] * 4, *["macOS"] * 3, "Linux")
SCREENS = ("1920x1080", "1366x768", "2560x1440", "390x844", "412x915", "1536x864", "3840x2160")
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Europe/London", "Asia/Tokyo")
EVENT_NAMES = (
    *["screen_view"] * 14,
    *["button_click"] * 3,
    "search",
    "add_to_cart",
    "purchase",
    "signup_completed",
)
REFERRERS = (
    *[""] * 10,
    *["https://www.google.com/"] * 5,
    "https://www.bing.com/",
    "https://duckduckgo.com/",
    "https://news.ycombinator.com/",
    "https://www.linkedin.com/feed/",
)
SECTIONS = ("products", "blog", "docs", "category", "help", "customers")
SLUGS = (
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "glade", "haven", "inlet", "jetty"),
    *("knoll", "larch", "mesa", "north", "ocean", "prairie", "quarry", "ridge", "summit", "tundra"),
)
SOURCES = ("google", "newsletter", "linkedin", "partner")
MEDIUMS = ("cpc", "email", "social", "referral")
PLANS = (*["free"] * 6, *["pro"] * 3, *["team"] * 2, "enterprise")
METRICS: Mapping[str, float] = {"FCP": 1.2, "LCP": 2.1, "CLS": 0.0001, "INP": 0.16, "TTFB": 0.42}
"""The vitals of a page, each with the factor for a number up to a thousand that is mostly small."""
ERROR_TYPES = ("TypeError", "ReferenceError", "RangeError", "NetworkError", "SyntaxError")
LEVELS = (*["error"] * 8, "warning", "fatal")
