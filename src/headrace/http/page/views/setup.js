/** The first steps of a website: what its pages need, and a light that turns green with its first event. */

import { page, timezone, urlWith } from "../app_state.js";
import { openLive } from "../api/live.js";
import { custom } from "../api/queries.js";
import { pinnedTracker } from "../api/tracker.js";
import { Copyable } from "../controls/copyable.js";
import { useLoad } from "../controls/load.js";
import { Failure, Skeleton } from "../controls/messages.js";
import { html } from "../html.js";
import { ago, counted, datetime } from "../state/format.js";
import { faultsOf, titleOf } from "../state/live/live_items.js";
import { DEFAULT_STATE } from "../state/page_state.js";
import { useEffect, useState } from "../vendor/hooks.js";

/** @typedef {{count: number, bots: number, latest: string, title: string}} Arrived  `title` is that of an item that came while this was shown; events of bots are not in `count` */

const PAUSE_MS = 5000;
const BODY = {
  query: {
    table: "events",
    selects: [
      { field: "*", aggregate: "count", alias: "events" },
      { field: "time", aggregate: "latest", alias: "latest" },
      { field: "*", aggregate: "count", alias: "bots", filters: [{ field: "is_bot", operator: "eq", value: true }] },
    ],
  },
  lastDays: 3652,
};

export function Setup() {
  return html`<${FirstSteps} />`;
}

/** @param {{onFirst?: () => void}} props  `onFirst` is called when the first event has come while this was shown */
export function FirstSteps({ onFirst }) {
  const id = page.value.website;
  const { value: script, error, reload } = useLoad("tracker", pinnedTracker);
  const snippet = `<script defer src="${location.origin}${script?.path}" integrity="${script?.integrity}" crossorigin="anonymous" data-client-id="${id}"></script>`;
  return html`<div class="setup">
    <${Light} key=${id} id=${id} onFirst=${onFirst} />
    <section class="card step"><b class="count">1</b><div><h2>Put this line into the head of every page</h2>
      <div class="snippet">${error != null ? html`<${Failure} error=${error} onRetry=${reload} />` : script ? html`<${Copyable} text=${snippet} />` : html`<${Skeleton} lines=${2} />`}</div>
      <p class="faint">It sends page views, page exits, errors and web vitals, and sets no cookie. The address and the integrity value pin this version. Own events: <code>headrace.track("signup")</code>.</p></div></section>
    <section class="card step"><b class="count">2</b><div><h2>Open one of the pages, or paste this into a terminal</h2>
      <${Copyable} text=${curlCall(location.origin, id)} />
      <p class="faint">The first event turns the light green, and the overview draws it. Servers send events with a key: <a href="/docs">the reference</a> shows how.</p></div></section>
  </div>`;
}

/** A page view as anybody can send it. @param {string} origin @param {string} id */
function curlCall(origin, id) {
  const body = JSON.stringify({ name: "screen_view", path: "/hello", anonymousId: "me", sessionId: "first" });
  return `curl -sS '${origin}/track?website_id=${id}' \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`;
}

/** @param {{id: string, onFirst?: () => void}} props */
function Light({ id, onFirst }) {
  const [arrived, setArrived] = useState(/** @type {Arrived | null} */ (null));
  const [faults, setFaults] = useState(/** @type {string[]} */ ([]));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [turn, setTurn] = useState(0);
  useEffect(() => watch(id, { onArrived: setArrived, onFaults: setFaults, onError: setError }), [id, turn]);
  const isNew = Boolean(arrived?.title);
  useEffect(() => {
    if (isNew) onFirst?.();
  }, [isNew]);
  if (error != null) return html`<${Failure} error=${error} onRetry=${() => (setError(null), setTurn((last) => last + 1))} />`;
  const isThere = Boolean(arrived?.count);
  return html`<section class=${`card light ${isThere ? "on" : ""}`}><i></i><div role="status">
    <strong>${isThere ? "Events arrive" : arrived ? "Waiting for the first event" : "Looking for events"}</strong>
    ${isThere && arrived ? html`<p class="faint">${arrived.title && html`<b><bdi>${arrived.title}</bdi></b> just now. `}${counted(arrived.count, "event", "events")} so far${arrived.title ? "" : html`, the last one <span title=${datetime(arrived.latest, timezone.value)}>${ago(arrived.latest)}</span>`}.</p>` : html`<p class="faint">${arrived?.bots ? `${counted(arrived.bots, "event", "events")} of bots so far, which no figure has: automated browsers and crawlers. Open a page in a browser of yours.` : "Nothing to do here: the light turns green by itself."}</p>`}
    ${faults.length > 0 && html`<ul class="refusal"><li><b>A call was refused just now</b></li>${faults.map((fault) => html`<li key=${fault}>${fault}</li>`)}</ul>`}</div>
    ${isThere && html`<a class="primary button" href=${urlWith({ view: "overview", item: "", query: "", metric: "", range: DEFAULT_STATE.range })}>See the overview</a>`}</section>`;
}

/**
 * Count what is there and listen for what comes, which is counted again, as the last count may have
 * it or not; where nothing can be heard, count again and again.
 * @param {string} id
 * @param {{onArrived: (arrived: Arrived) => void, onFaults: (faults: string[]) => void, onError: (error: unknown) => void}} report
 */
function watch(id, { onArrived, onFaults, onError }) {
  const controller = new AbortController();
  let known = { count: 0, bots: 0, latest: "" };
  let title = "";
  let timer = 0;
  let recount = 0;
  let counted = 0;
  const count = async (isHeard = true) => {
    counted = Date.now();
    const { data } = await custom(id, BODY, controller.signal);
    const { events = 0, bots = 0, latest = "" } = data[0] ?? {};
    known = { count: Math.max(known.count, events), bots: Math.max(known.bots, bots), latest: latest || known.latest }; // heard meanwhile
    if (isHeard || known.count) onArrived({ ...known, title });
  };
  const countUntilThere = () => count().then(() => known.count || poll(), fail);
  const poll = () => {
    timer = window.setTimeout(countUntilThere, PAUSE_MS);
  };
  const fail = (/** @type {unknown} */ error) => controller.signal.aborted || onError(error);
  const onItem = (/** @type {import("../api/live.js").LiveItem} */ item) => {
    const shown = { ...item, number: 0, received: "" };
    if (item.kind === "refused") onFaults(faultsOf(shown));
    if (item.kind !== "event" || item.body.table !== "events") return;
    onFaults([]);
    const { is_bot: isBot, time, path } = item.body.row;
    if (!isBot) title = `${titleOf(shown)} ${path ?? ""}`.trim();
    known = isBot ? { ...known, bots: known.bots || 1 } : { ...known, count: known.count || 1, latest: time };
    onArrived({ ...known, title });
    recount ||= window.setTimeout(() => {
      recount = 0;
      count().catch(fail);
    }, counted + PAUSE_MS - Date.now());
  };
  const close = openLive(id, onItem, (state) => {
    if (state === "refused") countUntilThere();
    if (state === "open") count().catch(fail); // what came before is not heard
  });
  count(false).catch(fail);
  return () => {
    controller.abort();
    clearTimeout(timer);
    clearTimeout(recount);
    close();
  };
}
