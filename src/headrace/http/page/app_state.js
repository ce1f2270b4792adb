/** What all views share: the state of the URL, who is signed in, the colours. */

import { computed, signal } from "./vendor/signals.js";
import { boundsOf, localTimezone, suitableGranularity } from "./state/dates.js";
import { formatUrl, parseUrl } from "./state/page_state.js";

/** @typedef {import("./state/page_state.js").PageState} PageState */
/** @typedef {import("./api/session.js").Session} Session */

export const page = signal(parseUrl(location.href));
/** undefined until the service has answered, null where nobody is signed in. */
export const session = signal(/** @type {Session | null | undefined} */ (undefined));
export const theme = signal(document.documentElement.dataset["chosen"] ?? "auto");

/** By which the colours are stored. */
const THEME_KEY = "headrace_theme";

export const timezone = computed(() => page.value.timezone || localTimezone());
/** When the first rows of websites were, by `firstKey`; "" without one. What ends today and begins with them waits for it. */
export const firstTimes = signal(/** @type {Record<string, string>} */ ({}));
const TABLES = /** @type {Record<string, string>} */ ({ vitals: "performance", errors: "errors" });
/** The table that a view is about. */
export const table = computed(() => TABLES[page.value.view] ?? "events");
export const firstKey = computed(() => `${page.value.website} ${table.value}`);
/** When days were looked at last: the page may be open beyond midnight. */
export const now = signal(Date.now());
export const bounds = computed(() => boundsOf(page.value.range, timezone.value, Math.max(now.value, Date.now()), firstTimes.value[firstKey.value]));
/** All days have none before them to be compared with. */
export const compare = computed(() => ("isAll" in page.value.range && page.value.compare === "previous_period" ? "none" : page.value.compare));
export const granularity = computed(() => page.value.granularity || suitableGranularity(bounds.value));
export const website = computed(() => session.value?.websites.find(({ id }) => id === page.value.website) ?? null);

/** The URL of the state with some changes. @param {Partial<PageState>} changes */
export function urlWith(changes) {
  return formatUrl({ ...page.value, ...changes });
}

/** The URL of a view that keeps website, range, zone and filters. @param {string} view @param {string} [item] */
export function viewUrl(view, item = "") {
  return urlWith({ view, item, metric: "", query: "" });
}

/** Change the state as a step of the history. @param {Partial<PageState>} changes */
export function navigate(changes) {
  follow(urlWith(changes));
}

/** Change the state without a step of the history. @param {Partial<PageState>} changes */
export function amend(changes) {
  page.value = { ...page.value, ...changes };
  history.replaceState(history.state, "", formatUrl(page.value));
}

/** Go to a URL of this page. @param {string} url */
export function follow(url) {
  const { view, item } = page.value;
  const isHere = new URL(url, location.href).href === location.href;
  history[isHere ? "replaceState" : "pushState"](null, "", url); // as browsers do it
  page.value = parseUrl(location.href);
  if (page.value.view !== view || page.value.item !== item) scrollTo(0, 0);
}

/** Follow links, the browser's own buttons and the colours that another tab chooses without loading the page again. */
export function listen() {
  addEventListener("storage", ({ key, newValue }) => {
    if (key === THEME_KEY || key === null) applyTheme(newValue); // null: all that was stored is gone
  });
  addEventListener("popstate", () => {
    page.value = parseUrl(location.href);
  });
  addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
    if (link.origin !== location.origin || !link.pathname.startsWith("/app/") || link.hash) return;
    event.preventDefault();
    follow(link.href);
  });
}

/** @param {string} chosen "auto", "light" or "dark" */
export function chooseTheme(chosen) {
  applyTheme(chosen);
  try {
    localStorage.setItem(THEME_KEY, chosen);
  } catch {
    // Storage may be forbidden: the choice then holds until the page is closed.
  }
}

/** @param {string | null} chosen all but "light" and "dark" means the colours of the system */
function applyTheme(chosen) {
  const { dataset } = document.documentElement;
  if (chosen === "light" || chosen === "dark") dataset["chosen"] = chosen;
  else delete dataset["chosen"];
  dataset["theme"] = dataset["chosen"] ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  theme.value = dataset["chosen"] ?? "auto"; // charts are drawn with what applies now
}
