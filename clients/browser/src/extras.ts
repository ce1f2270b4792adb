// The second file of the tracker, fetched when the page is idle: web vitals, errors, clicks, and
// navigations in browsers without the Navigation API.
//
// The core keeps errors and clicks from before this file is there.

import { watchClicks } from "./clicks";
import { watchErrors } from "./errors";
import type { Core } from "./index";
import { watchVitals } from "./vitals";

const { headrace } = window as unknown as { headrace: Core };
const { changed, options, put, track } = headrace;
const path = location.pathname;

const handleClick = watchClicks(options, track);
const handleError = watchErrors((item) => put("errors", { path, ...item }), track);
headrace.observe((event) =>
  event.type === "click"
    ? handleClick(event as MouseEvent)
    : options.trackErrors !== "false" && handleError(event as ErrorEvent | PromiseRejectionEvent),
);

if (options.trackWebVitals !== "false") watchVitals(headrace);

if (!("navigation" in window)) {
  for (const name of ["pushState", "replaceState"] as const) {
    const original = history[name];
    history[name] = (...entry) => {
      original.apply(history, entry);
      changed();
    };
  }
  addEventListener("popstate", changed);
}
