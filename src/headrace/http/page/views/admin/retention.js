/** How long rows of a website are kept: its numbers, and a change that tells beforehand what it hides. */

import { page } from "../../app_state.js";
import { change, read } from "../../api/admin.js";
import { custom } from "../../api/queries.js";
import { useDraft } from "../../controls/draft.js";
import { useLoad } from "../../controls/load.js";
import { explain, Failure, Skeleton } from "../../controls/messages.js";
import { ignoreHeldEnter, onceOnly } from "../../controls/once_only.js";
import { html } from "../../html.js";
import { counted } from "../../state/format.js";
import { changedRetention, daysOf, expiringDays, keptWords, leftToService, RETENTION_FIELDS } from "../../state/admin/retention.js";
import { useRef, useState } from "../../vendor/hooks.js";

/** @typedef {import("../../state/admin/retention.js").Retention} Retention */

const NOUNS = /** @type {Record<string, [string, string]>} */ ({ events: ["event", "events"], errors: ["error", "errors"], performance: ["web vital", "web vitals"] });
const BOTS_TOO = { field: "is_bot", operator: "in", value: [true, false] };

/** @param {{onChanged: () => void}} props */
export function Retention({ onChanged }) {
  const id = page.value.website;
  const { value, error, reload } = useLoad(`retention of ${id}`, (signal) => read("websites", id, signal));
  if (error != null) return html`<${Failure} error=${error} onRetry=${reload} />`;
  if (!value) return html`<section class="card"><${Skeleton} lines=${2} /></section>`;
  const own = /** @type {Retention} */ (value.retention);
  return html`<${Form} key=${JSON.stringify(own)} website=${id} own=${own} onChanged=${() => (reload(), onChanged())} />`;
}

/** @param {{website: string, own: Retention, onChanged: () => void}} props */
function Form({ website, own, onChanged }) {
  const [texts, setTexts] = useDraft(`retention ${website} ${JSON.stringify(own)}`, () => Object.fromEntries(Object.keys(RETENTION_FIELDS).map((name) => [name, String(own[name] ?? "")])));
  const [known, setKnown] = useState(/** @type {{texts: object, hidden: {table: string, rows: number}[]} | null} */ (null));
  const isBusy = useRef(false);
  const [isWaiting, setWaiting] = useState(false);
  const [failure, setFailure] = useState(/** @type {unknown} */ (null));
  const hidden = known?.texts === texts ? known.hidden : null; // what comes late is that of other numbers
  const days = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, daysOf(text)]));
  const isWrong = Object.values(days).includes(undefined);
  const wanted = /** @type {Retention} */ (days);
  const changes = isWrong ? {} : changedRetention(own, wanted);
  const isChanged = Object.keys(changes).length > 0;
  const step = async () => {
    if (isBusy.current) return;
    setFailure(null);
    isBusy.current = true;
    setWaiting(true);
    try {
      if (hidden === null) {
        setKnown({ texts, hidden: await countHidden(website, wanted) });
      } else {
        await change("websites", website, { retention: changes });
        onChanged();
      }
    } catch (refusal) {
      setFailure(refusal);
    }
    isBusy.current = false;
    setWaiting(false);
  };
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => setTexts({ ...texts, [name]: event.target.value });
  const lost = (hidden ?? []).filter(({ rows }) => rows > 0);
  const unknown = leftToService(own, wanted).map((table) => RETENTION_FIELDS[/** @type {"events"} */ (table)].toLowerCase());
  return html`<form class="card keep" onKeyDown=${ignoreHeldEnter} onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), isChanged && step())}>
    <h2>How long rows are kept</h2>
    <div class="fields">${Object.entries(RETENTION_FIELDS).map(([name, words]) => html`<label key=${name}>${words}
      <input inputmode="numeric" aria-label=${`${words}, days`} aria-invalid=${days[name] === undefined} placeholder=${name === "days" ? "as the service" : "as all tables"} value=${texts[name]} onInput=${set(name)} />
      <small class="faint">${days[name] === undefined ? "a number of days" : days[name] === null ? "" : keptWords(days[name])}</small></label>`)}</div>
    <p class="actions">${hidden === null
      ? html`<button type="submit" class="primary" disabled=${!isChanged}>${isWaiting ? "Counting …" : "What would change?"}</button>`
      : html`<button type="submit" class=${lost.length || unknown.length ? "danger" : "primary"} onClick=${onceOnly}>${lost.length ? "Hide them and keep the rest" : "Apply"}</button>
        <button type="button" class="quiet" data-next onClick=${() => setKnown(null)}>Cancel</button>`}
      ${hidden !== null && html`<span role="status">${lost.length ? `${lost.map(({ table, rows }) => counted(rows, ...(NOUNS[table] ?? ["row", "rows"]))).join(", ")} would leave all answers at once, and the disk within a day.` : unknown.length ? "" : "No row would leave the answers."}
        ${unknown.length > 0 && `How long ${unknown.join(", ")} are kept is then up to the service, which may hide some of them.`}</span>`}</p>
    ${failure != null && html`<p class="refusal" role="alert">${explain(failure).title}</p>`}
    <p class="faint">Days; 0 keeps rows for ever. An empty field follows the one for all tables, and that the service's own setting.</p></form>`;
}

/** How many rows of each table are older than their cutoff. @param {string} website @param {Retention} wanted */
function countHidden(website, wanted) {
  return Promise.all(expiringDays(wanted).map(async ({ table, ...dates }) => {
    const query = { table, selects: [{ field: "*", aggregate: "count", alias: "rows" }], filters: [BOTS_TOO] };
    const { data } = await custom(website, { query, ...dates, timezone: "UTC" });
    return { table, rows: data[0]?.["rows"] ?? 0 };
  }));
}
