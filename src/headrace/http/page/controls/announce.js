/**
 * What is said to those who do not see the page: which view is opened, that it loads for longer, that it is done, or why not.
 * It waits until they have heard the rest, and is said once, whatever number of parts it is about.
 */

/** Sooner than this, nobody needs to know of it. */
export const SLOW_MS = 1000;
/** An answer often leads to the next question. */
const SETTLED_MS = 200;
const LOADING = "Loading";
const LOADED = "Loaded";

let pending = 0;
let slow = 0;
let settled = 0;
let said = "";
/** Whether a part has its answer, and whether one has none. */
let [isAnswered, isRefused] = [false, false];

/** Say a sentence, unless it was the last one. @param {string} text */
export function announce(text) {
  const line = document.getElementById("announcement");
  if (!line || said === text) return;
  said = text;
  line.textContent = text;
}

/** A view is opened: that it has loaded is no news, unless it takes longer. @param {string} title */
export function announceView(title) {
  announce(title);
  said = "";
}

/** A part begins to load. @param {boolean} isRetry of what was refused: that it is tried again is no news */
export function beginLoading(isRetry) {
  pending += 1;
  clearTimeout(settled);
  // Beside a failure it is no news: the failure would be said again with each part that it is of.
  if (!isRetry && !slow) slow = setTimeout(() => isRefused || announce(LOADING), SLOW_MS);
}

/** A part has loaded, was refused, or is wanted no longer. @param {"loaded" | "refused" | "dropped"} how */
export function endLoading(how) {
  pending -= 1;
  isAnswered ||= how === "loaded";
  isRefused ||= how === "refused";
  if (pending === 0) settled = setTimeout(settle, SETTLED_MS);
}

/** Nothing is waited for any more. What was said is not true any more, then. */
function settle() {
  clearTimeout(slow);
  slow = 0;
  if (!isRefused && said !== "") announce(isAnswered ? LOADED : "");
  [isAnswered, isRefused] = [false, false];
}
