/** Erasures of a website: what was erased, with its receipts, and a form that counts before it erases. */

import { page, timezone } from "../app_state.js";
import { erase, erasures } from "../api/admin.js";
import { useLoad } from "../controls/load.js";
import { Empty, explain, Failure, Skeleton } from "../controls/messages.js";
import { html } from "../html.js";
import { datetime, exactNumber } from "../state/format.js";
import { useState } from "../vendor/hooks.js";

/** @typedef {Record<string, any>} Row */

const SELECTORS = { anonymousId: "Visitor (anonymous id)", sessionId: "Session", profileId: "Profile", eventId: "Event" };

export function Erasures() {
  const id = page.value.website;
  const { value, error, reload } = useLoad(`erasures ${id}`, (signal) => erasures(id, signal));
  return html`<${Form} website=${id} onDone=${reload} />
    ${error != null ? html`<${Failure} error=${error} onRetry=${reload} />` : !value ? html`<section class="card"><${Skeleton} lines=${3} /></section>` : html`<section class="card"><h2 class="pad">Receipts</h2>
      ${value.length === 0 ? html`<${Empty} title="Nothing was erased" />` : value.map((receipt) => html`<details key=${receipt["id"]}><summary><b>${receipt["selector"]}</b> <span class=${`rating ${receipt["state"] === "done" ? "good" : "fair"}`}>${receipt["state"]}</span>
        <span class="faint">${datetime(receipt["requested"], timezone.value)} · ${exactNumber(sum(receipt["rows"]))} rows</span></summary><pre>${JSON.stringify(receipt, null, 2)}</pre></details>`)}</section>`}`;
}

/** @param {{website: string, onDone: () => void}} props */
function Form({ website, onDone }) {
  const [selector, setSelector] = useState("anonymousId");
  const [value, setValue] = useState("");
  const [counted, setCounted] = useState(/** @type {Row | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const send = async (/** @type {boolean} */ dryRun) => {
    setError(null);
    try {
      const answer = await erase(website, { [selector]: value, ...(dryRun && { dryRun }) });
      setCounted(dryRun ? answer : null);
      if (!dryRun) {
        setValue("");
        onDone();
      }
    } catch (refusal) {
      setError(refusal);
    }
  };
  const input = (/** @type {(text: string) => void} */ set) => (/** @type {any} */ event) => {
    set(event.target.value);
    setCounted(null);
  };
  const rows = counted && sum(counted["rows"] ?? counted);
  return html`<form class="card erase" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), send(counted === null))}>
    <label>Erase everything of <select value=${selector} onChange=${input(setSelector)}>${Object.entries(SELECTORS).map(([name, words]) => html`<option key=${name} value=${name}>${words}</option>`)}</select></label>
    <label><span class="hidden">Id</span><input required placeholder="Id" value=${value} onInput=${input(setValue)} /></label>
    <button type="submit" class=${counted ? "danger" : "primary"} disabled=${!value || rows === 0}>${counted ? `Erase ${exactNumber(rows)} rows for good` : "Count the rows"}</button>
    ${rows === 0 && html`<span class="faint">No row matches.</span>`}
    ${error != null && html`<p class="refusal" role="alert">${explain(error).title}</p>`}
    <p class="faint">Rows leave answers at once and the disk soon after. Backups are erased when they are restored.</p></form>`;
}

/** @param {Row} rows figures by table @returns {number} */
function sum(rows) {
  return Object.values(rows ?? {}).reduce((total, one) => total + (typeof one === "number" ? one : 0), 0);
}
