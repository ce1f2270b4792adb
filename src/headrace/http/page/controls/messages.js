/** What is shown in the place of figures: nothing yet, nothing at all, or why not. */

import { ApiError } from "../api/client.js";
import { html } from "../html.js";
import { useEffect, useState } from "../vendor/hooks.js";
import { announce } from "./announce.js";

const NO_ANSWER_S = 5;

/** @param {{lines?: number}} props */
export function Skeleton({ lines = 6 }) {
  return html`<div class="skeleton" aria-hidden="true">
    ${Array.from({ length: lines }, (_, index) => html`<i key=${index} style=${{ width: `${92 - ((index * 37) % 48)}%` }}></i>`)}
  </div>`;
}

/** How a part of a view is marked whose figures are still those of before. @param {{isLoading: boolean}} load @param {string} name of its class */
export function marked({ isLoading }, name) {
  return { class: isLoading ? `${name} stale` : name, "aria-busy": isLoading };
}

/** @param {{title: string, children?: any}} props */
export function Empty({ title, children }) {
  return html`<div class="empty"><strong>${title}</strong>${children && html`<p>${children}</p>`}</div>`;
}

/** A failure in a sentence, with what to do. @param {{error: unknown, onRetry?: () => void}} props */
export function Failure({ error, onRetry }) {
  const wait = error instanceof ApiError ? waitS(error) : 0;
  const left = useCountdown(error, wait, onRetry);
  const { title, advice } = explain(error);
  // Said without the seconds, and not by each part of a view that the same failure is of.
  useEffect(() => {
    announce(advice ? `${title}. ${advice}` : title);
    return () => onRetry || announce("");
  }, [error]);
  return html`<div class="failure">
    <strong>${title}</strong>
    <p>${advice}${wait > 0 && onRetry && html` Trying again in ${left} s.`}</p>
    ${error instanceof ApiError && error.requestId && html`<p class="faint">Request ${error.requestId}</p>`}
    ${onRetry && html`<button type="button" onClick=${() => (announce(""), onRetry())}>Try again</button>`}
  </div>`;
}

/** A module that a view needs has not come. Browsers may keep that an import failed, and an updated service has other files: the page is loaded again. */
export function NotSent() {
  const [error] = useState(() => new ApiError("The service did not send this view", { status: 0, code: "NO_VIEW" }));
  return html`<${Failure} error=${error} onRetry=${() => location.reload()} />`;
}

/** In how many seconds a call is worth another try, 0 for none. @param {ApiError} error */
function waitS({ status, code, retryAfterS }) {
  if (status === 0 || status === 502) return code ? 0 : NO_ANSWER_S;
  return status === 429 || status === 503 ? Math.max(1, retryAfterS) : 0;
}

/** @param {unknown} error @returns {{title: string, advice: string}} */
export function explain(error) {
  if (!(error instanceof ApiError)) return { title: "This page failed", advice: error instanceof Error ? error.message : String(error) };
  const advice = /** @type {Record<number, string>} */ ({
    0: "It may be restarting, or the network is down. Nothing that was acknowledged is lost.",
    401: "Sign in again to go on.",
    403: "The key of this session lacks the right to do this.",
    404: "It does not exist, or this session may not see it.",
    422: "The query needs more memory than it may take. Choose a shorter range or fewer groups.",
    429: "There is a limit of queries a minute for each key.",
    500: "The log of the service says why, beside the number of the request.",
    502: "What stands between this browser and the service, such as a proxy, does not reach it. It may be restarting.",
    503: "The service accepts events, but cannot answer just now.",
    504: "The query took longer than it may. Choose a shorter range or fewer groups.",
  })[error.status];
  const other = error.code === "WEBSITE_NOT_FOUND" ? " Choose another one from the list of websites." : "";
  return { title: error.message, advice: `${advice ?? ""}${other}` };
}

/** @param {unknown} error @param {number} seconds @param {(() => void) | undefined} onEnd */
function useCountdown(error, seconds, onEnd) {
  const [left, setLeft] = useState(seconds);
  useEffect(() => {
    setLeft(seconds);
    if (seconds === 0 || !onEnd) return undefined;
    const end = Date.now() + seconds * 1000;
    const timer = setInterval(() => {
      const rest = Math.max(0, Math.ceil((end - Date.now()) / 1000));
      setLeft(rest);
      if (rest === 0) {
        clearInterval(timer);
        onEnd();
      }
    }, 250);
    addEventListener("online", onEnd);
    return () => {
      clearInterval(timer);
      removeEventListener("online", onEnd);
    };
  }, [error]);
  return left;
}
