/** Events and refused items as they come. */

import { page, timezone } from "../app_state.js";
import { html } from "../html.js";
import { countryName, datetime, exactNumber } from "../state/format.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";

/** @typedef {{id: number, kind: "event" | "refused" | "missed", data: any}} Item */

const MAX_KEPT = 300;
const SHOWN_EVERY_MS = 250;

export function Live() {
  const id = page.value.website;
  const [isPaused, setPaused] = useState(false);
  const [search, setSearch] = useState("");
  const { items, state, count } = useStream(id, isPaused);
  const wanted = search.trim().toLowerCase();
  const shown = items.filter((item) => !wanted || JSON.stringify(item.data).toLowerCase().includes(wanted));
  return html`
    <div class="toolbar"><span class=${`live-state ${state}`}><i></i>${{ open: "Live", connecting: "Connecting", closed: "No stream" }[state]}</span>
      <button type="button" aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)}>${isPaused ? "Go on" : "Pause"}</button>
      <input type="search" data-shortcut="/" aria-label="Filter what is shown" placeholder="Filter what is shown" value=${search} onInput=${(/** @type {any} */ event) => setSearch(event.target.value)} />
      <span class="faint">${exactNumber(count)} since this page was opened</span></div>
    <section class="card"><ol class="stream" aria-live="off">
      ${shown.length === 0 && html`<li class="empty"><strong>${state === "closed" ? "The stream cannot be opened" : wanted ? "Nothing like this yet" : "Waiting for events"}</strong><p>${state === "closed" ? "It may be that too many are open, or that the service is away. This page tries again." : "Each is shown when it is stored."}</p></li>`}
      ${shown.map((item) => html`<${Line} key=${item.id} item=${item} />`)}</ol></section>`;
}

/** @param {{item: Item}} props */
function Line({ item: { kind, data } }) {
  if (kind === "missed") return html`<li class="missed">${data.count == null ? "Some" : exactNumber(data.count)} items were too fast for this browser</li>`;
  if (kind === "refused") {
    return html`<li><details><summary><span class="rating poor">refused</span> <b>${data.path}</b> <span>${data.code}</span> <span class="faint">${data.errors?.[0]?.message ?? ""}</span></summary>
      <ul class="faults">${(data.errors ?? []).map((/** @type {any} */ fault, /** @type {number} */ index) => html`<li key=${index}><code>${fault.index == null ? "" : `[${fault.index}]`}${fault.field}</code> ${fault.message}</li>`)}</ul></details></li>`;
  }
  const { table, row } = data;
  const name = table === "events" ? row.event_name : table === "errors" ? row.message : `${row.metric_name} ${exactNumber(row.metric_value)}`;
  return html`<li><details><summary><span class="mono faint">${datetime(row.time, timezone.value).slice(-8)}</span> <b class=${table === "errors" ? "refusal" : ""}><bdi>${name}</bdi></b> <bdi>${row.path}</bdi>
      <span class="faint">${[row.country && countryName(row.country), row.browser_name, row.device_type].filter(Boolean).join(" · ")}</span></summary>
    <pre>${JSON.stringify(Object.fromEntries(Object.entries(row).filter(([, value]) => value !== "" && value !== null)), null, 2)}</pre></details></li>`;
}

/** The newest items first; while it is paused, new ones wait. @param {string} website @param {boolean} isPaused */
function useStream(website, isPaused) {
  const [state, setState] = useState(/** @type {"open" | "connecting" | "closed"} */ ("connecting"));
  const [items, setItems] = useState(/** @type {Item[]} */ ([]));
  const received = useRef({ list: /** @type {Item[]} */ ([]), count: 0, isPaused });
  received.current.isPaused = isPaused;
  useEffect(() => {
    received.current = { ...received.current, list: [], count: 0 };
    setItems([]);
    let source = open();
    let retry = 0;
    const timer = setInterval(() => {
      if (!received.current.isPaused) setItems(received.current.list);
    }, SHOWN_EVERY_MS);
    function open() {
      const made = new EventSource(`/v1/live?website_id=${encodeURIComponent(website)}`);
      made.onopen = () => setState("open");
      made.onerror = () => {
        setState(made.readyState === EventSource.CLOSED ? "closed" : "connecting");
        if (made.readyState === EventSource.CLOSED) {
          clearTimeout(retry);
          retry = window.setTimeout(() => (source = open()), 10_000);
        }
      };
      for (const kind of /** @type {const} */ (["event", "refused", "missed"])) {
        made.addEventListener(kind, (message) => {
          const now = received.current;
          now.count += 1;
          now.list = [{ id: now.count, kind, data: JSON.parse(message.data) }, ...now.list].slice(0, MAX_KEPT);
        });
      }
      return made;
    }
    return () => {
      clearInterval(timer);
      clearTimeout(retry);
      source.close();
    };
  }, [website]);
  return { items, state, count: received.current.count };
}
