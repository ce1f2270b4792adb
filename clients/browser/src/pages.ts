// Page views and page exits, over real and virtual navigations.

import { address, hash } from "./addresses";
import { send } from "./events";
import { retryNow, sendOnLeaving, type Item } from "./outbox";

/** The address of the view that is open; none of a page that is skipped. */
let current = "";
let visibleSince = 0;
let interactions = 0;
let depth = 0;
let pending: ReturnType<typeof setTimeout>;

/** What makes a page another one: no parameters, which pages change and remove as they like. */
const placeNow = (): string => location.pathname + hash();
let place = placeNow();

/** The page of another website that led here, without its query: own pages are no referrers, so a
 * session has that of its first page, or none.
 */
const referrer = (): string =>
  document.referrer.split(location.origin + "/")[0]!.split("?")[0]!;

const measure = (): void => {
  depth = Math.max(depth, (scrollY + innerHeight) / document.documentElement.scrollHeight);
};

const exit = (): void => {
  if (visibleSince) {
    measure(); // not at its beginning, when it may be empty
    send("page_exit", {}, {
      scroll_depth: Math.min(100 * depth + 0.5, 100) | 0,
      time_on_page: ((performance.now() - visibleSince) | 0) / 1e3,
      path: current,
      interaction_count: interactions,
    });
  }
  visibleSince = interactions = 0;
};

const show = (): void => {
  if (current && !document.hidden) visibleSince ||= performance.now();
};

/** Send a view of the page. */
export const view = (properties?: Item): void => {
  const from = current ? "" : referrer();
  current = address();
  depth = 0;
  show();
  send("screen_view", properties, {
    title: document.title.slice(0, 500),
    referrer: from,
    language: navigator.language,
    timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    screen_resolution: screen.width + "x" + screen.height,
    viewport_size: innerWidth + "x" + innerHeight,
  });
};

/** Look whether the page is another one, and send an exit and a view. */
export const changed = (): void => {
  if (place !== (place = placeNow())) {
    exit();
    clearTimeout(pending);
    pending = setTimeout(view); // the new title is set after the navigation
  }
};

/** Watch navigations, and what visitors do with a page. */
export const watchPages = (): void => {
  // a busy Firefox leaves out `visibilitychange` when a page is left: the next page sends the exit
  addEventListener("pagehide", exit);
  (self as { navigation?: EventTarget }).navigation?.addEventListener(
    "currententrychange",
    changed,
  );
  addEventListener("pageshow", (event) => {
    if (event.persisted) {
      view();
      retryNow();
    }
  });
  // also when the page is left: what sends at `pagehide`, too, sends everything twice
  addEventListener("visibilitychange", () => {
    if (document.hidden) {
      exit();
      sendOnLeaving();
    } else show();
  });
  addEventListener("click", () => interactions++);
  addEventListener("scroll", measure);
  addEventListener("keydown", () => interactions++);
};
