// The second file of the tracker, fetched when the page is idle: web vitals, errors, clicks, and
// navigations in browsers without the Navigation API.
//
// The core keeps errors and clicks from before this file is there.

import { watchClicks } from "./clicks";
import { watchErrors } from "./errors";
import type { Core } from "./index";
import { watchVitals } from "./vitals";

const { headrace } = self as unknown as { headrace: Core };
const { changed, options, put, track } = headrace;

const handleClick = watchClicks(options, track);
const handleError = watchErrors((item) => put("errors", item), track);
headrace.handle((event) =>
  event.type === "click"
    ? handleClick(event as MouseEvent)
    : options.trackErrors !== "false" && handleError(event as ErrorEvent | PromiseRejectionEvent),
);

// the middle button, which opens a link in another tab
addEventListener("auxclick", (event) => event.button === 1 && handleClick(event), true);

if (options.trackWebVitals !== "false") watchVitals(headrace);

if (!(self as { navigation?: unknown }).navigation) {
  for (const name of ["pushState", "replaceState"] as const) {
    const original = history[name];
    history[name] = (...entry) => {
      original.apply(history, entry);
      changed();
    };
  }
  addEventListener("popstate", changed);
  changed(); // before this file was there
}
