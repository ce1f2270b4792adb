/** The tracker that the service has for pages. */

import { call } from "./client.js";

/** The path of a version of the tracker, and its integrity value. @typedef {{path: string, integrity: string}} PinnedScript */

/** @param {AbortSignal} [signal] @returns {Promise<PinnedScript>} */
export function pinnedTracker(signal) {
  return call("GET", "/headrace.json", { signal });
}
