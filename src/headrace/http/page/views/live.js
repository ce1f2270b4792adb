/** Items as they are acknowledged, and calls that are refused, with their faults. A list that was left goes on. */

import { page, session, timezone } from "../app_state.js";
import { beginning, openLive } from "../api/live.js";
import { Empty } from "../controls/messages.js";
import { html } from "../html.js";
import { datetime } from "../state/format.js";
import { MAX_SHOWN, faultsOf, hasText, kindOf, titleOf, withItem } from "../state/live/live_items.js";
import { useLayoutEffect, useState } from "../vendor/hooks.js";

/** @typedef {import("../state/live/live_items.js").Shown} Shown */
/** @typedef {{items: Shown[], position: import("../api/live.js").Position}} List */

/** By website, for as long as the document and the session last. @type {Map<string, List>} */
const lists = new Map();
session.subscribe((signedIn) => signedIn || lists.clear());
let number = 0;

const STATES = {
  open: "Listening",
  waiting: "Connecting …",
  refused: "The service has refused the stream: too many are open, or the website is gone.",
};

export function Live() {
  const id = page.value.website;
  const list = listOf(id);
  const [, setNumber] = useState(number);
  const [state, setState] = useState(/** @type {import("../api/live.js").StreamState} */ ("waiting"));
  const [isPaused, setPaused] = useState(false);
  const [text, setText] = useState("");
  // Within the render: otherwise a frame says of the stream before that it is open.
  useLayoutEffect(() => {
    if (isPaused) return undefined;
    return openLive(id, ({ kind, body }) => {
      const received = body.row?.received_at ?? new Date().toISOString();
      list.items = withItem(list.items, { kind, body, number: ++number, received });
      setNumber(number);
    }, setState, list.position);
  }, [id, isPaused]);
  const { items } = list;
  const shown = items.filter((item) => hasText(item, text));
  return html`
    <div class="toolbar">
      <button type="button" aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)}>Pause</button>
      <input type="search" aria-label="Show items with" placeholder="Show items with …" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
      <span class="faint" role="status">${isPaused ? "Paused" : STATES[state]}</span>
    </div>
    <section class="card"><ul class="live" aria-label="Items">${shown.map((item) => html`<${Item} key=${item.number} item=${item} />`)}</ul>
      ${shown.length === 0 && html`<${Empty} title=${items.length ? "No item has this text" : "Nothing yet"}>Items are shown when they are acknowledged.<//>`}
      ${items.length === MAX_SHOWN && html`<p class="faint note">The newest ${MAX_SHOWN}.</p>`}</section>`;
}

/** @param {string} website @returns {List} */
function listOf(website) {
  const list = lists.get(website) ?? { items: [], position: beginning() };
  lists.set(website, list);
  return list;
}

/** @param {{item: Shown}} props */
function Item({ item }) {
  const faults = faultsOf(item);
  const row = item.body.row;
  return html`<li class=${item.kind}><details><summary>
      <span class="mono faint">${datetime(item.received, timezone.value).slice(-8)}</span><b>${kindOf(item)}</b><bdi>${titleOf(item, timezone.value)}</bdi><bdi class="faint">${row?.path ?? ""}</bdi></summary>
    ${row && html`<pre tabindex="0">${JSON.stringify(filled(row), null, 2)}</pre>`}</details>
    ${faults.length > 0 && html`<ul class="refusal">${faults.map((fault) => html`<li key=${fault}>${fault}</li>`)}</ul>`}</li>`;
}

/** The columns that have a value. @param {Record<string, unknown>} row */
function filled(row) {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== "" && value !== null));
}
