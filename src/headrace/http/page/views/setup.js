/** The tracker's snippet for a website, and whether its first event is there. */

import { page } from "../app_state.js";
import { custom } from "../api/queries.js";
import { pinnedTracker } from "../api/tracker.js";
import { Failure } from "../controls/messages.js";
import { html } from "../html.js";
import { exactNumber } from "../state/format.js";
import { useEffect, useState } from "../vendor/hooks.js";

const PAUSE_MS = 5000;
const BODY = { query: { table: "events", selects: [{ field: "*", aggregate: "count", alias: "events" }] }, lastDays: 30 };

export function Setup() {
  const id = page.value.website;
  const script = usePinnedTracker();
  const snippet = `<script defer src="${location.origin}${script?.path}" integrity="${script?.integrity}" crossorigin="anonymous" data-client-id="${id}"></script>`;
  const call = `curl -sS '${location.origin}/track?website_id=${id}' \\\n  -H 'Content-Type: application/json' \\\n  -d '{"name": "first_event", "anonymousId": "me"}'`;
  return html`<div class="setup">
    <${Light} key=${id} id=${id} />
    <section class="card"><h2>1. Put this into the head of every page</h2>${script && html`<${Copyable} text=${snippet} />`}
      <p class="faint">The path and the integrity value pin this version of the tracker. It sends page views, page exits, errors and web vitals, and sets no cookie. Own events: <code>headrace.track("signup")</code>.</p></section>
    <section class="card"><h2>2. Open one of the pages</h2><p class="faint">The light turns green when its first event is stored. Without a page at hand, a terminal will do:</p><${Copyable} text=${call} /></section>
  </div>`;
}

/** The current version of the tracker, null until it is known. */
function usePinnedTracker() {
  const [script, setScript] = useState(/** @type {import("../api/tracker.js").PinnedScript | null} */ (null));
  useEffect(() => {
    const controller = new AbortController();
    pinnedTracker(controller.signal).then(setScript, () => {});
    return () => controller.abort();
  }, []);
  return script;
}

/** @param {{id: string}} props */
function Light({ id }) {
  const [count, setCount] = useState(/** @type {number | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    let timer = 0;
    const ask = async () => {
      try {
        const { data } = await custom(id, BODY, controller.signal);
        const found = data[0]?.["events"] ?? 0;
        setError(null);
        setCount(found);
        if (found === 0) timer = window.setTimeout(ask, PAUSE_MS);
      } catch (refusal) {
        if (!controller.signal.aborted) setError(refusal);
      }
    };
    ask();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [id, turn]);
  if (error != null) return html`<${Failure} error=${error} onRetry=${() => setTurn((last) => last + 1)} />`;
  const isThere = Boolean(count);
  return html`<section class=${`card light ${isThere ? "on" : ""}`} role="status"><i></i>
    <div><strong>${isThere ? "Events arrive" : "Waiting for the first event"}</strong>
      <p class="faint">${isThere ? html`${exactNumber(count)} in the last 30 days. <a href=${`/app/?website_id=${encodeURIComponent(id)}`}>Look at them</a>` : "This page asks every five seconds."}</p></div></section>`;
}

/** @param {{text: string}} props */
function Copyable({ text }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return html`<div class="copyable"><pre>${text}</pre><button type="button" onClick=${copy}>${isCopied ? "Copied" : "Copy"}</button></div>`;
}
