// Page views and page exits, over real and virtual navigations.

import { matches, options } from "./config";
import { retryNow, sendOnLeaving, type Item } from "./outbox";

let current = "";
let visibleSince = 0;
let interactions = 0;
let depth = 0;
let pending: ReturnType<typeof setTimeout>;

/** The address of the page, of a masked one without its last part and its query.
 *
 * Of a query only campaigns and click ids are kept: the rest may name somebody, or let them in.
 */
export const address = (): string => {
  const { origin, pathname, search, hash } = location;
  return (
    origin +
    (matches("maskPatterns")
      ? pathname.replace(/[^/]+$/, "*")
      : pathname + search.replace(/[?&](?!utm_|\w*clk?id=)[^&]*/g, "").replace(/^&/, "?")) +
    (options.trackHashChanges === "true" ? hash : "")
  );
};

/** The page of another website that led here, without its query: own pages are no referrers, so a
 * session has that of its first page, or none.
 */
const referrer = (): string =>
  document.referrer.split(location.origin + "/")[0]!.split("?")[0]!;

const measure = (): void => {
  const { scrollHeight, clientHeight, scrollTop } = document.documentElement;
  depth = Math.max(depth, (100 * (scrollTop + clientHeight)) / scrollHeight);
};

/** Watch navigations, and send each view and each exit. Returns what sends a view, and what looks
 * whether the address has changed.
 */
export const watchPages = (
  send: (name: string, properties?: Item, fields?: Item) => void,
): [view: (properties?: Item) => void, changed: () => void] => {
  const exit = (): void => {
    if (visibleSince) {
      send("page_exit", {}, {
        path: current,
        time_on_page: ((performance.now() - visibleSince) | 0) / 1e3,
        scroll_depth: Math.min(depth + 0.5, 100) | 0,
        interaction_count: interactions,
      });
    }
    visibleSince = interactions = 0;
  };
  const show = (): void => {
    if (!document.hidden) visibleSince ||= performance.now();
  };
  const view = (properties?: Item): void => {
    depth = 0;
    show();
    measure();
    send("screen_view", properties, {
      title: document.title,
      referrer: current ? "" : referrer(),
      language: navigator.language,
      timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      screen_resolution: screen.width + "x" + screen.height,
      viewport_size: innerWidth + "x" + innerHeight,
    });
    current = address();
  };
  const changed = (): void => {
    if (current !== address()) {
      exit();
      clearTimeout(pending);
      pending = setTimeout(view); // the new title is set after the navigation
    }
  };
  (window as { navigation?: EventTarget }).navigation?.addEventListener(
    "currententrychange",
    changed,
  );
  // also when the page is left: whoever listens to `pagehide`, too, sends everything twice
  addEventListener("visibilitychange", () => (document.hidden ? (exit(), sendOnLeaving()) : show()));
  addEventListener("pageshow", (event) => {
    if (event.persisted) {
      view();
      retryNow();
    }
  });
  addEventListener("scroll", measure);
  addEventListener("click", () => interactions++);
  addEventListener("keydown", () => interactions++);
  return [view, changed];
};
