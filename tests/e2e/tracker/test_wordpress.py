"""The plugin of the guide for WordPress, in a real WordPress that a real browser visits."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from headrace.http.tracker.files import pinned_script
from testing.browsers.chromium import Tab
from testing.servers.wordpress import PASSWORD, WordPress, wordpress
from testing.service import Service, running_service, wait_until
from tests.docs.guides import blocks
from tests.e2e.tracker.pages import LOADED, SECOND_FILE_LOADED, run

__all__ = ["wordpress"]

pytestmark = [pytest.mark.browser, pytest.mark.slow]

GUIDE = "wordpress.md"
PUBLISH = """
wp_insert_post( array(
	'post_name' => $argv[1], 'post_title' => ucfirst( $argv[1] ), 'post_content' => $argv[2],
	'post_status' => 'publish', 'post_author' => 1,
) );
"""
COMMENT = """
wp_insert_comment( array(
	'comment_post_ID' => get_page_by_path( $argv[1], OBJECT, 'post' )->ID,
	'comment_approved' => $argv[2],
) );
"""
MAKE_DUE = """
$due = array();
foreach ( _get_cron_array() as $hooks ) {
	$due += $hooks['headrace_repeat'] ?? array();
}
_set_cron_array( array( 1 => array( 'headrace_repeat' => $due ) ) );
"""
COUNT_PENDING = """
$events = array_column( _get_cron_array(), 'headrace_repeat' );
echo array_sum( array_map( 'count', $events ) );
"""
WOOCOMMERCE = """
function wc_get_order( $id ) {
	return new class {
		function get_total() { return '49.50'; }
		function get_currency() { return 'EUR'; }
		function get_customer_ip_address() { return ''; }
		function get_customer_user_agent() {
			return 'Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0';
		}
	};
}
do_action( 'woocommerce_payment_complete', 7 );
do_action( 'woocommerce_payment_complete', 7 );
$product = new class { function get_name() { return 'Lamp'; } };
$loop = array( 'attributes' => array( 'rel' => 'nofollow' ) );
echo json_encode( apply_filters( 'woocommerce_loop_add_to_cart_args', $loop, $product ) );
"""


REQUEST = """
add_action( 'requests-requests.before_request', function ( $u, $h, $d, $t, $options ) {
	$names = array( 'blocking', 'timeout', 'connect_timeout' );
	echo json_encode( array_intersect_key( $options, array_flip( $names ) ) );
}, 20, 5 );
do_action( 'headrace_track', 'sent', array(), array( 'path' => '/request/' ) );
"""


class Shop(NamedTuple):
    """A site with the plugin, and the service and website to which it sends."""

    site: WordPress
    service: Service
    website: str

    def publish(self, slug: str, content: str = "Hello") -> str:
        """Publish a post and return its URL."""
        self.site.run_in_site(PUBLISH, slug, content)
        return f"{self.site.url}/{slug}/"

    def repeat(self) -> int:
        """Send again what waits for WP-Cron, and return how many events still do."""
        self.site.run_in_site(MAKE_DUE)
        self.site.run("require 'wp-cron.php';")
        return int(self.site.run_in_site(COUNT_PENDING))

    def rows(self, *columns: str, path: str) -> list[tuple[object, ...]]:
        """Return the events of a path: the name and these columns."""
        rows = self.service.rows(self.website, "events", ["path", "event_name", *columns])
        return sorted(tuple(row.values())[1:] for row in rows if row["path"] == path)

    def wait_for_rows(self, number: int, *, path: str) -> None:
        wait_until(lambda: len(self.rows(path=path)) >= number, f"{number} events are stored")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, wordpress: WordPress) -> Iterator[Shop]:
    with running_service(tmp_path_factory.mktemp("wordpress") / "data") as service:
        website = service.website()
        settings = ""
        for block in blocks(GUIDE, "php"):
            name, _, code = block.removeprefix("// ").partition("\n")
            if name == "wp-config.php":
                settings = _configured(code, service, website)
            else:
                wordpress.write(name, code)
        wordpress.start(settings)
        yield Shop(wordpress, service, website)


def _configured(code: str, service: Service, website: str) -> str:
    script = pinned_script("/headrace.js")
    values = {
        "https://events.example.com": service.url,
        "/headrace.0123abcd.js": script.path,
        "sha384-...": script.integrity,
        "web_...": website,
        "hr_...": service.key("track:events", websites=[website]).secret,
    }
    for placeholder, value in values.items():
        assert code.count(placeholder) >= 1, placeholder
        code = code.replace(placeholder, value)
    return code


def test_pages_have_the_tracker_with_its_attributes(shop: Shop) -> None:
    url = shop.publish("attributes")
    page = shop.service.http.get(url, timeout=60).text
    script = pinned_script("/headrace.js")
    (tag,) = re.findall(r"<script[^>]*headrace[^>]*></script>", page)
    assert tag == (
        f'<script id="headrace-js" defer src="{shop.service.url}{script.path}" '
        f'integrity="{script.integrity}" crossorigin="anonymous" '
        f'data-client-id="{shop.website}"></script>'
    )


def test_visitors_send_views_and_clicks(shop: Shop, chromium: Tab) -> None:
    (link,) = blocks(GUIDE, "html")
    url = shop.publish("spring", link)
    shop.publish("plans")
    chromium.open(url)
    chromium.run(SECOND_FILE_LOADED)
    run(chromium, "document.querySelector('[data-track]').click()")
    shop.wait_for_rows(1, path="/plans/")
    chromium.open("about:blank")
    shop.wait_for_rows(3, path="/spring/")
    shop.wait_for_rows(2, path="/plans/")

    assert shop.rows("properties.plan", "browser_name", "title", path="/spring/") == [
        ("page_exit", None, "Chrome", ""),
        ("plan_chosen", "pro", "Chrome", ""),
        ("screen_view", None, "Chrome", "Spring \N{EN DASH} A shop"),
    ]
    assert shop.rows("referrer", path="/plans/") == [("page_exit", ""), ("screen_view", "")]


def fill(tab: Tab, fields: Mapping[str, str]) -> None:
    """Put texts into fields of a form, by their ids."""
    texts = f"Object.entries({json.dumps(fields)})"
    run(tab, f"{texts}.forEach(([id, text]) => (document.getElementById(id).value = text))")


def test_editors_of_the_site_are_not_counted(shop: Shop, chromium: Tab) -> None:
    url = shop.publish("draft")
    chromium.open(f"{shop.site.url}/wp-login.php")
    fill(chromium, {"user_login": "admin", "user_pass": PASSWORD})
    run(chromium, "document.getElementById('wp-submit').click()")
    wait_until(
        lambda: "/wp-admin/" in str(chromium.run("arguments[0](location.pathname)")), "signed in"
    )
    chromium.open(url)
    is_editor = "arguments[0](document.body.classList.contains('logged-in'))"
    assert chromium.run(is_editor) is True
    assert chromium.run("arguments[0](document.getElementById('headrace-js'))") is None
    chromium.command("Network.clearBrowserCookies")
    chromium.open(url)
    chromium.run(LOADED)
    shop.wait_for_rows(1, path="/draft/")
    assert shop.rows(path="/draft/") == [("screen_view",)]


def test_comments_are_events_that_are_stored_once(shop: Shop, chromium: Tab) -> None:
    chromium.open(shop.publish("news"))
    chromium.run(LOADED)
    fill(chromium, {"author": "Ann", "email": "ann@example.com", "comment": "A fine lamp"})
    run(chromium, "document.querySelector('#commentform [type=submit]').click()")
    posted = ("comment_posted", "News", True, "Chrome")
    columns = ("properties.post", "properties.is_held", "browser_name")
    wait_until(lambda: posted in shop.rows(*columns, path="/news/"), "the comment is stored")
    assert shop.repeat() == 0
    comments = [row for row in shop.rows(*columns, path="/news/") if row[0] == "comment_posted"]
    assert comments == [posted]


def test_comments_are_stored_later_where_the_service_is_away(shop: Shop) -> None:
    shop.publish("outage")
    assert shop.repeat() == 0
    shop.service.kill()
    shop.site.run_in_site(COMMENT, "outage", "1")
    shop.site.run_in_site(COMMENT, "outage", "spam")
    assert shop.repeat() == 1
    shop.service.restart()
    assert shop.repeat() == 0
    assert shop.rows("properties.is_held", path="/outage/") == [("comment_posted", False)]


def test_orders_are_stored_once_with_the_browser_of_their_customer(shop: Shop) -> None:
    printed = shop.site.run_in_site(WOOCOMMERCE)
    assert json.loads(printed) == {
        "attributes": {"rel": "nofollow", "data-track": "add_to_cart", "data-product": "Lamp"}
    }
    assert shop.repeat() == 0
    assert shop.rows("value", "currency", "browser_name", path="") == [
        ("order_paid", 49.5, "EUR", "Firefox")
    ]


def test_visitors_wait_a_second_at_most_where_the_service_does_not_answer(shop: Shop) -> None:
    options = json.loads(shop.site.run_in_site(REQUEST))
    assert options == {"blocking": False, "timeout": 1, "connect_timeout": 1}
    assert shop.repeat() == 0
    assert shop.rows(path="/request/") == [("sent",)]
