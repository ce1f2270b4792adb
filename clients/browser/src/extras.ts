// The second file of the tracker, fetched when the page is idle: web vitals, errors and clicks.
//
// The core keeps errors and clicks from before this file is there.

import { onCLS, onFCP, onINP, onLCP, onTTFB } from "web-vitals";

import { watchClicks } from "./clicks";
import { watchErrors } from "./errors";
import type { Core } from "./index";

const { headrace } = window as unknown as { headrace: Core };
const { options, put, track } = headrace;
const path = location.pathname;

const handleClick = watchClicks(options, track);
const handleError = watchErrors((item) => put("errors", { path, ...item }));
headrace.observe((event) =>
  event.type === "click"
    ? handleClick(event as MouseEvent)
    : options.trackErrors !== "false" && handleError(event as ErrorEvent | PromiseRejectionEvent),
);

if (options.trackWebVitals !== "false") {
  for (const watch of [onCLS, onFCP, onINP, onLCP, onTTFB]) {
    watch(({ name, value }) => put("vitals", { path, metricName: name, metricValue: value }));
  }
}
