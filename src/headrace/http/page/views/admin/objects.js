/** Lists of what a key with `manage:config` may change, and the changes. */

import { session, timezone } from "../../app_state.js";
import { change, create, list, remove } from "../../api/admin.js";
import { fetchSession } from "../../api/session.js";
import { DataTable } from "../../charts/data_table.js";
import { useLoad } from "../../controls/load.js";
import { Empty, explain, Failure, Skeleton } from "../../controls/messages.js";
import { html } from "../../html.js";
import { ago, datetime } from "../../state/format.js";
import { useState } from "../../vendor/hooks.js";

/** @typedef {Record<string, any>} Row */
/** @typedef {import("../../api/admin.js").Kind} Kind */
/** @typedef {{name: string, label: string, isRequired?: boolean, isList?: boolean, options?: string[], hint?: string}} Field */
/** @typedef {{label: string, isDanger?: boolean, confirm?: string, isOffered?: (row: Row) => boolean, run: (row: Row) => Promise<unknown>}} Action */

const SCOPES = ["track:events", "read:data", "manage:data", "manage:config"];
const text = (/** @type {unknown} */ value) => (Array.isArray(value) ? value.join(", ") || "all" : value == null || value === "" ? "–" : String(value));
const scopeCell = (/** @type {string[]} */ scopes) => html`<span class="wrap">${scopes.map((scope) => html`<code key=${scope}>${scope}</code> `)}</span>`;
const nameCell = (/** @type {Row} */ row) => html`<span class="line">${row["name"]}</span><small class="line faint mono">${row["id"]}</small>`;
const keyCell = (/** @type {Row} */ row) => html`<span class="line"><span class="mono">${row["prefix"]}…</span> ${row["kind"] !== "key" && html`<span class="faint">${row["kind"]}</span>`}</span><small class="line faint mono">${row["id"]}</small>`;
const stateCell = (/** @type {Row} */ row) => (row["revoked"] ? html`<span class="wrap faint">revoked ${ago(row["revoked"])}</span>` : row["expires"] ? html`<span class="wrap" title=${datetime(row["expires"], timezone.value)}>until ${datetime(row["expires"], timezone.value).slice(0, -3)}</span>` : "active");
const since = (/** @type {string} */ iso) => (iso ? ago(iso) : "–");

export function Websites() {
  return html`<${Objects} kind="websites" noun="website" columns=${[{ key: "whole", label: "Website", format: nameCell }, { key: "domain", label: "Domain", format: text }, { key: "public", label: "Public", isMinor: true, format: (/** @type {boolean} */ is) => (is ? "yes" : "no") }, { key: "origins", label: "Origins", isMinor: true, format: text }, { key: "created", label: "Made", isMinor: true, format: since }]}
    fields=${[{ name: "name", label: "Name", isRequired: true }, { name: "domain", label: "Domain" }, { name: "origins", label: "Allowed origins", isList: true, hint: "between commas; none allows all" }]}
    actions=${[
      { label: "Make public", isOffered: (/** @type {Row} */ row) => !row["public"], confirm: "Everybody may then read its figures.", run: (/** @type {Row} */ row) => change("websites", row["id"], { public: true }) },
      { label: "Make private", isOffered: (/** @type {Row} */ row) => row["public"], run: (/** @type {Row} */ row) => change("websites", row["id"], { public: false }) },
      { label: "Delete", isDanger: true, confirm: "Its events are refused from then on.", run: (/** @type {Row} */ row) => remove("websites", row["id"]) },
    ]} />`;
}

export function Keys() {
  return html`<${Objects} kind="keys" noun="key" columns=${[{ key: "whole", label: "Key", format: keyCell }, { key: "scopes", label: "Scopes", format: scopeCell }, { key: "websites", label: "Websites", isMinor: true, format: text }, { key: "state", label: "State", format: stateCell }]}
    fields=${[{ name: "scopes", label: "Scopes", isList: true, options: SCOPES, isRequired: true }, { name: "websites", label: "Websites", isList: true, hint: "ids between commas; none means all" }]}
    actions=${[{ label: "Revoke", isDanger: true, isOffered: (/** @type {Row} */ row) => !row["revoked"], confirm: "Whoever uses it is refused within seconds.", run: (/** @type {Row} */ row) => remove("keys", row["id"]) }]} />`;
}

export function Organizations() {
  return html`<${Objects} kind="organizations" noun="organization" columns=${[{ key: "whole", label: "Organization", format: nameCell }, { key: "created", label: "Made", isMinor: true, format: since }]}
    fields=${[{ name: "name", label: "Name", isRequired: true }]}
    actions=${[{ label: "Delete", isDanger: true, confirm: "Its keys stop working, and its websites refuse events.", run: (/** @type {Row} */ row) => remove("organizations", row["id"]) }]} />`;
}

/** @param {{kind: Kind, noun: string, columns: import("../../charts/data_table.js").TableColumn[], fields?: Field[], actions: Action[]}} props */
function Objects({ kind, noun, columns, fields, actions }) {
  const { value, error, reload } = useLoad(`admin ${kind}`, (signal) => list(kind, signal));
  const [made, setMade] = useState(/** @type {Row | null} */ (null));
  const onChanged = async () => {
    reload();
    session.value = await fetchSession();
  };
  if (error != null) return html`<${Failure} error=${error} onRetry=${reload} />`;
  if (!value) return html`<section class="card"><${Skeleton} /></section>`;
  const rows = value.map((row) => ({ ...row, actions: row, whole: row, state: row }));
  const cell = (/** @type {Row} */ row) => html`<${Actions} key=${row["id"]} row=${row} actions=${actions} onDone=${onChanged} />`;
  return html`
    ${made?.["key"] && html`<section class="card secret" role="status"><strong>Copy this key now. It is shown this once.</strong><code>${made["key"]}</code></section>`}
    ${fields && html`<${NewObject} kind=${kind} noun=${noun} fields=${fields} onDone=${(/** @type {Row} */ row) => (setMade(row), onChanged())} />`}
    <section class="card">${rows.length === 0 ? html`<${Empty} title=${`No ${noun} yet`} />` : html`<${DataTable} caption=${kind} isStacked=${kind === "keys"} rows=${rows} columns=${[...columns, { key: "actions", label: "Actions", format: cell }]} />`}</section>`;
}

/** What may be done to one object; what cannot be undone is asked twice. @param {{row: Row, actions: Action[], onDone: () => void}} props */
function Actions({ row, actions, onDone }) {
  const [asked, setAsked] = useState(/** @type {Action | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const run = async (/** @type {Action} */ action) => {
    setAsked(null);
    try {
      await action.run(row);
      onDone();
    } catch (refusal) {
      setError(refusal);
    }
  };
  if (error != null) return html`<span class="refusal">${explain(error).title}</span>`;
  if (asked) return html`<span class="ask">${asked.confirm} <button type="button" class=${asked.isDanger ? "danger" : "primary"} onClick=${() => run(asked)}>${asked.label}</button> <button type="button" class="quiet" onClick=${() => setAsked(null)}>Cancel</button></span>`;
  const offered = actions.filter(({ isOffered }) => !isOffered || isOffered(row));
  return html`<span class="ask">${offered.map((action) => html`<button key=${action.label} type="button" class=${`quiet ${action.isDanger ? "danger" : ""}`} onClick=${() => (action.confirm ? setAsked(action) : run(action))}>${action.label}</button>`)}</span>`;
}

/** @param {{kind: Kind, noun: string, fields: Field[], onDone: (row: Row) => void}} props */
function NewObject({ kind, noun, fields, onDone }) {
  const [values, setValues] = useState(/** @type {Row} */ ({}));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const onSubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setError(null);
    try {
      onDone(await create(kind, values));
      setValues({});
    } catch (refusal) {
      setError(refusal);
    }
  };
  const set = (/** @type {Field} */ field, /** @type {unknown} */ value) => setValues({ ...values, [field.name]: value });
  const toggle = (/** @type {Field} */ field, /** @type {string} */ option) => {
    const chosen = values[field.name] ?? [];
    set(field, chosen.includes(option) ? chosen.filter((/** @type {string} */ other) => other !== option) : [...chosen, option]);
  };
  return html`<details class="card new"><summary>New ${noun}</summary><form onSubmit=${onSubmit}>
    ${fields.map((field) => html`<label key=${field.name}>${field.label}${field.hint && html` <span class="faint">${field.hint}</span>`}
      ${field.options
        ? html`<span class="choices">${field.options.map((option) => html`<label key=${option}><input type="checkbox" checked=${(values[field.name] ?? []).includes(option)} onChange=${() => toggle(field, option)} /> ${option}</label>`)}</span>`
        : html`<input required=${field.isRequired} value=${text(values[field.name] ?? "").replace(/^(–|all)$/, "")} onChange=${(/** @type {any} */ event) => set(field, field.isList ? event.target.value.split(",").map((/** @type {string} */ part) => part.trim()).filter(Boolean) : event.target.value)} />`}</label>`)}
    ${error != null && html`<p class="refusal" role="alert">${explain(error).title}</p>`}
    <button type="submit" class="primary">Make it</button></form></details>`;
}
