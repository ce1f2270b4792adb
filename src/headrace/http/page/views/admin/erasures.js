/** Erasures of a website: what was erased, with its receipts, and a form that counts before it erases. */

import { page, timezone } from "../../app_state.js";
import { erase, erasures } from "../../api/admin.js";
import { useDraft } from "../../controls/draft.js";
import { useLoad } from "../../controls/load.js";
import { Empty, explain, Failure, Skeleton } from "../../controls/messages.js";
import { ignoreHeldEnter, onceOnly } from "../../controls/once_only.js";
import { html } from "../../html.js";
import { emptySelection, isComplete, problemOf, SELECTORS, selectorOf, storedRows } from "../../state/admin/erasures.js";
import { counted, datetime } from "../../state/format.js";
import { useEffect, useRef, useState } from "../../vendor/hooks.js";

/** @typedef {import("../../api/admin.js").Receipt} ErasureReceipt */

const PAUSE_MS = 5000;
const STATES = /** @type {Record<string, string>} */ ({ pending: "erasing", done: "done" });
const TABLES = /** @type {Record<string, [string, string]>} */ ({ events: ["event", "events"], errors: ["error", "errors"], performance: ["web vital", "web vitals"], quarantine: ["quarantined item", "quarantined items"] });

export function Erasures() {
  const id = page.value.website;
  const { value, error, reload } = useLoad(`erasures ${id}`, (signal) => erasures(id, signal));
  const isPending = value?.some((receipt) => receipt.state !== "done") ?? false;
  useEffect(() => {
    if (!isPending) return undefined;
    const timer = setTimeout(reload, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return html`<${Form} key=${id} website=${id} onDone=${reload} />
    ${error != null ? html`<${Failure} error=${error} onRetry=${reload} />` : !value ? html`<section class="card"><${Skeleton} lines=${3} /></section>` : html`<section class="card lines"><h2 class="pad">Receipts</h2>
      ${value.length === 0 ? html`<${Empty} title="Nothing was erased" />` : value.map((receipt) => html`<${Receipt} key=${receipt.id} receipt=${receipt} />`)}</section>`}`;
}

/** @param {{receipt: ErasureReceipt}} props */
function Receipt({ receipt }) {
  const time = (/** @type {string | null} */ iso) => (iso ? datetime(iso, timezone.value) : "not yet");
  return html`<details><summary><b>${SELECTORS[receipt.selector] ?? receipt.selector}</b> <span class=${`rating ${receipt.state === "done" ? "good" : "fair"}`}>${STATES[receipt.state] ?? receipt.state}</span>
      <span class="faint">${datetime(receipt.requested, timezone.value)} · ${counted(storedRows(receipt.rows), "row", "rows")}</span></summary>
    <dl class="facts">
      <div><dt>Rows</dt><dd>${Object.entries(receipt.rows).filter(([, rows]) => rows).map(([table, rows]) => counted(rows, ...(TABLES[table] ?? ["row", "rows"]))).join(", ") || "none"}</dd></div>
      <div><dt>Out of answers</dt><dd>${time(receipt.answersClean)}</dd></div>
      <div><dt>Off the disk</dt><dd>${time(receipt.done)}</dd></div>
      <div><dt>Asked by</dt><dd><bdi>${receipt.by}</bdi></dd></div>
      <div><dt>Subject, as a keyed hash</dt><dd class="mono">${receipt.subject}</dd></div>
      <div><dt>Receipt</dt><dd class="mono">${receipt.id}</dd></div>
      ${receipt.byHand.length > 0 && html`<div><dt>To do by hand</dt><dd>${receipt.byHand.map((task) => html`<p key=${task}>${task}</p>`)}</dd></div>`}
      ${receipt.lastError && html`<div><dt>Last failure</dt><dd class="refusal">${receipt.lastError}</dd></div>`}
    </dl></details>`;
}

/** @param {{website: string, onDone: () => void}} props */
function Form({ website, onDone }) {
  const [selection, setSelection] = useDraft(`erasure ${website}`, emptySelection);
  const shown = useRef(selection);
  shown.current = selection;
  const [known, setCounted] = useState(/** @type {{selection: object, rows: number} | null} */ (null));
  const isBusy = useRef(false);
  const [doing, setDoing] = useState("");
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const rows = known?.selection === selection ? known.rows : null; // a count that comes late is that of another selection
  const send = async () => {
    if (isBusy.current) return;
    setError(null);
    isBusy.current = true;
    setDoing(rows === null ? "Counting …" : "Erasing …");
    try {
      const body = selectorOf(selection);
      if (rows === null) {
        setCounted({ selection, rows: storedRows((await erase(website, { ...body, dryRun: true })).rows) });
      } else {
        await erase(website, body);
        if (shown.current === selection) setSelection(emptySelection());
        onDone();
      }
    } catch (refusal) {
      setError(refusal);
    }
    isBusy.current = false;
    setDoing("");
  };
  const problem = problemOf(selection);
  const set = (/** @type {string} */ name, /** @type {unknown} */ value) => setSelection({ ...selection, [name]: value });
  const text = (/** @type {"key" | "value"} */ name, /** @type {string} */ label) => html`<label><span class="hidden">${label}</span><input required autocomplete="off" placeholder=${label} aria-invalid=${name === "value" && problem !== ""} value=${selection[name]} onInput=${(/** @type {any} */ event) => set(name, event.target.value)} /></label>`;
  return html`<form class="card erase" onKeyDown=${ignoreHeldEnter} onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), send())}>
    <label>Erase everything of <select value=${selection.selector} onChange=${(/** @type {any} */ event) => set("selector", event.target.value)}>${Object.entries(SELECTORS).map(([name, words]) => html`<option key=${name} value=${name}>${words}</option>`)}</select></label>
    ${selection.selector === "property" && html`${text("key", "Property")}<label><span class="hidden">Type of the value</span><select value=${selection.type} onChange=${(/** @type {any} */ event) => set("type", event.target.value)}><option value="text">is the text</option><option value="number">is the number</option><option value="boolean">is true or false</option></select></label>`}
    ${text("value", selection.selector === "property" ? "Value" : "Id")}
    ${selection.selector === "profileId" && html`<label class="check"><input type="checkbox" checked=${selection.withVisitors} onChange=${() => set("withVisitors", !selection.withVisitors)} /> and of its visitors before they were known</label>`}
    <button type="submit" class=${rows ? "danger" : "primary"} disabled=${!isComplete(selection) || rows === 0} onClick=${onceOnly}>${doing || (rows ? `Erase ${counted(rows, "row", "rows")} for good` : "Count the rows")}</button>
    ${rows === 0 && html`<span class="faint" role="status">No row matches.</span>`}
    ${problem && html`<span class="refusal" role="status">${problem}</span>`}
    ${error != null && html`<p class="refusal" role="alert">${explain(error).title}</p>`}
    <p class="faint">Rows leave answers at once and the disk soon after. Backups of before keep them, and lose them when they are restored.</p></form>`;
}
