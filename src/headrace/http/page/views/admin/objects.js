/** Lists of what a key with `manage:config` may change, and the changes. */

import { amend, page, session, timezone } from "../../app_state.js";
import { change, create, list, remove } from "../../api/admin.js";
import { afterChange } from "../../api/session.js";
import { DataTable } from "../../charts/data_table.js";
import { Copyable } from "../../controls/copyable.js";
import { useDraft } from "../../controls/draft.js";
import { forget, useLoad } from "../../controls/load.js";
import { Empty, explain, Failure, Skeleton } from "../../controls/messages.js";
import { html } from "../../html.js";
import { ago, datetime, exactNumber } from "../../state/format.js";
import { useLayoutEffect, useRef, useState } from "../../vendor/hooks.js";
import { ObjectForm } from "./object_form.js";

/** @typedef {Record<string, any>} Row */
/** @typedef {import("../../api/admin.js").Kind} Kind */
/** @typedef {import("../../api/admin.js").Organization} Organization */
/** @typedef {import("../../api/admin.js").Website} Website */
/** @typedef {import("../../api/admin.js").Key} Key */
/** @typedef {import("./object_form.js").Field} Field */
/** @typedef {{label: string, isDanger?: boolean, isOnPage?: boolean, confirm?: string, isOffered?: (row: Row) => boolean, run: (row: Row) => Promise<unknown>}} Action */

const MAX_LISTED = 200;
const SCOPES = ["track:events", "read:data", "manage:data", "manage:config"];
const text = (/** @type {unknown} */ value) => (Array.isArray(value) ? value.join(", ") || "all" : value == null || value === "" ? "–" : String(value));
const scopeCell = (/** @type {string[]} */ scopes) => html`<span class="wrap">${scopes.map((scope) => html`<code key=${scope}>${scope}</code> `)}</span>`;
const nameCell = (/** @type {Organization | Website} */ row) => html`<span class="line">${row.name}</span><small class="line faint mono">${row.id}</small>`;
const keyCell = (/** @type {Key} */ row) => html`<span class="line"><span class="mono">${row.prefix}…</span> ${row.kind !== "key" && html`<span class="faint">${row.kind}</span>`}</span><small class="line faint mono">${row.id}</small>`;
const isOver = (/** @type {Key} */ row) => row.expires && Date.parse(row.expires) <= Date.now();
const stateCell = (/** @type {Key} */ row) => (row.revoked || isOver(row) ? html`<span class="wrap faint">${row.revoked ? "revoked" : "expired"} ${ago(row.revoked ?? row.expires ?? "")}</span>` : row.expires ? html`<span class="wrap" title=${datetime(row.expires, timezone.value)}>until ${datetime(row.expires, timezone.value).slice(0, -3)}</span>` : "active");
const option = (/** @type {{id: string, name: string, domain?: string}} */ { id, name, domain }) => ({ value: id, label: name || id, hint: domain, isFoundByHint: true });
const since = (/** @type {string} */ iso) => (iso ? ago(iso) : "–");

export function Websites() {
  const organizations = useOrganizations();
  return html`<${Objects} kind="websites" noun="website" isChangeable=${true} isOwn=${(/** @type {Row} */ row) => isOfSession(organizations, row["organization"])} columns=${[{ key: "whole", label: "Website", format: nameCell }, { key: "domain", label: "Domain", format: text }, { key: "public", label: "Public", isMinor: true, format: (/** @type {boolean} */ is) => (is ? "yes" : "no") }, { key: "origins", label: "Origins", isMinor: true, format: text }, { key: "created", label: "Created", isMinor: true, format: since }]}
    fields=${[{ name: "name", label: "Name", isRequired: true }, { name: "domain", label: "Domain" }, { name: "origins", label: "Allowed origins", isList: true, hint: "between commas; none allows all" }, ...organizationFields(organizations)]}
    actions=${[
      { label: "Make public", isOffered: (/** @type {Website} */ row) => !row.public, confirm: "Everybody may then read its figures.", run: (/** @type {Website} */ row) => change("websites", row.id, { public: true }) },
      { label: "Make private", isOffered: (/** @type {Website} */ row) => row.public, run: (/** @type {Website} */ row) => change("websites", row.id, { public: false }) },
      { label: "Delete", isDanger: true, confirm: "Its events are refused from then on. What is stored of it stays until it is erased.", run: (/** @type {Website} */ row) => remove("websites", row.id) },
    ]} />`;
}

export function Keys() {
  const organizations = useOrganizations();
  const websites = useLoad("admin websites", (signal) => list("websites", signal)).value ?? [];
  const nameOf = (/** @type {string} */ id) => websites.find((one) => one.id === id)?.name || id;
  const reached = (/** @type {Row} */ { organization = ownId(organizations) }) => websites.filter((one) => one.organization && (!organization || one.organization === organization)).map(option);
  const writable = (/** @type {Row} */ values) => reached(values).filter(({ value }) => !values["websites"]?.length || values["websites"].includes(value));
  const reachCell = (/** @type {Key} */ { websites: ids, home }) => html`<span class="wrap" title=${ids.join(", ")}>${text(ids.map(nameOf))}</span>${home && html`<small class="line faint" title=${home}>home: ${nameOf(home)}</small>`}`;
  return html`<${Objects} kind="keys" noun="key" columns=${[{ key: "whole", label: "Key", format: keyCell }, { key: "scopes", label: "Scopes", format: scopeCell }, { key: "reach", label: "Websites", isMinor: true, format: reachCell }, { key: "state", label: "State", format: stateCell }]}
    fields=${[{ name: "scopes", label: "Scopes", isList: true, options: SCOPES, isRequired: true }, ...organizationFields(organizations), { name: "websites", label: "Websites", isList: true, choices: reached, hint: "none means all of the organization" },
      { name: "home", label: "Home website", choices: writable, isOffered: (/** @type {Row} */ values) => values["scopes"]?.includes("track:events"), hint: "for events that name no website", none: "none, or the only one that there is" }, { name: "expires", label: "Expires", type: "date", hint: "at 00:00 UTC of this day; never without one" }]}
    actions=${[{ label: "Revoke", isDanger: true, isOffered: (/** @type {Key} */ row) => !row.revoked, confirm: "Whoever uses it is refused within seconds.", run: (/** @type {Key} */ row) => remove("keys", row.id) }]} />`;
}

/** All organizations, of which a new object may belong to one; none where the session reaches its own alone. */
function useOrganizations() {
  return useLoad("admin organizations", (signal) => list("organizations", signal)).value ?? [];
}

/** The organization of the session, undefined where it reaches no other. @param {Organization[]} organizations */
function ownId(organizations) {
  return organizations.find(({ name }) => name === "default")?.id;
}

/** Whether an organization is that of the session. @param {Organization[]} organizations @param {string} id */
function isOfSession(organizations, id) {
  return organizations.length === 0 || id === ownId(organizations);
}

/** @param {Organization[]} organizations @returns {Field[]} */
function organizationFields(organizations) {
  return [{ name: "organization", label: "Organization", choices: () => organizations.map(option), isOffered: () => organizations.length > 1, none: "that of this session" }];
}

export function Organizations() {
  return html`<${Objects} kind="organizations" noun="organization" isChangeable=${true} columns=${[{ key: "whole", label: "Organization", format: nameCell }, { key: "created", label: "Created", isMinor: true, format: since }]}
    fields=${[{ name: "name", label: "Name", isRequired: true }]}
    actions=${[{ label: "Delete", isDanger: true, confirm: "Its keys stop working, and its websites refuse events.", run: (/** @type {Organization} */ row) => remove("organizations", row.id) }]} />`;
}

/** @param {{kind: Kind, noun: string, columns: import("../../charts/data_table.js").TableColumn[], fields: Field[], actions: Action[], isChangeable?: boolean, isOwn?: (row: Row) => boolean}} props  `isOwn`: whether a website is of the session's organization */
function Objects({ kind, noun, columns, fields, actions, isChangeable = false, isOwn = () => true }) {
  const { value, error, reload } = useLoad(`admin ${kind}`, (signal) => list(kind, signal));
  const [made, setMade] = useState(/** @type {Row | null} */ (null));
  const [changed, setChanged] = useDraft(`changed ${kind}`, () => /** @type {Row | null} */ (null));
  const [isOpen, setOpen] = useDraft(`new ${kind} opened`, () => false);
  const [search, setSearch] = useState("");
  const onChanged = (/** @type {Row} */ row, isDeleted = false) => {
    setChanged(null);
    forget(); // the lists of other kinds: keys go with their organization
    reload();
    if (kind !== "websites" || !session.value) return;
    const isReached = !isDeleted && isOwn(row);
    session.value = afterChange(session.value, row, isReached);
    if (!isReached && row["id"] === page.value.website) amend({ website: session.value.websites[0]?.id ?? "" });
  };
  const onCreated = (/** @type {Row} */ row) => {
    setMade(row);
    onChanged(row);
  };
  const offered = isChangeable ? [{ label: "Change", run: async (/** @type {Row} */ row) => setChanged(row), isOnPage: true }, ...actions] : actions;
  if (error != null) return html`<${Failure} error=${error} onRetry=${reload} />`;
  if (!value) return html`<section class="card"><${Skeleton} /></section>`;
  const isMade = (/** @type {Row} */ row) => Number(row["id"] === made?.["id"]);
  const found = value.filter((row) => hasName(row, search.trim().toLowerCase())).sort((one, other) => isMade(other) - isMade(one));
  const rows = found.slice(0, MAX_LISTED).map((row) => ({ ...row, actions: row, whole: row, state: row, reach: row }));
  const cell = (/** @type {Row} */ row) => html`<${Actions} key=${row["id"]} row=${row} actions=${offered} onDone=${(/** @type {Action} */ { isDanger }) => onChanged(row, isDanger)} />`;
  return html`
    ${made?.["key"] && html`<section class="card secret" role="status"><strong>Copy this key now. It is shown this once.</strong><${Copyable} text=${made["key"]} /></section>`}
    ${changed
      ? html`<${Changed} key=${changed["id"]} kind=${kind} noun=${noun} fields=${fields} row=${changed} onDone=${(/** @type {Row} */ row) => onChanged(row)} onCancel=${() => setChanged(null)} />`
      : html`<details class="card new" open=${isOpen} onToggle=${(/** @type {any} */ event) => setOpen(event.target.open)}><summary>New ${noun}</summary><${ObjectForm} name=${`new ${kind}`} fields=${fields} label="Create" save=${async (/** @type {Row} */ values) => onCreated(await create(kind, values))} /></details>`}
    ${value.length > MAX_LISTED && html`<p class="toolbar"><input type="search" aria-label=${`Search ${kind}`} placeholder=${`Search ${exactNumber(value.length)} ${kind}`} value=${search} onInput=${(/** @type {any} */ event) => setSearch(event.target.value)} /></p>`}
    <section class="card">${rows.length === 0 ? html`<${Empty} title=${search.trim() ? `No ${noun} has this name` : `No ${noun} yet`} />` : html`<${DataTable} caption=${kind} isStacked=${kind !== "organizations"} rows=${rows} columns=${[...columns, { key: "actions", label: "Actions", format: cell }]} />`}
      ${found.length > MAX_LISTED && html`<p class="faint note">${exactNumber(found.length - MAX_LISTED)} more: search for them.</p>`}</section>`;
}

/** Whether one of an object's names has a text in it. @param {Row} row @param {string} wanted in small letters */
function hasName({ name, domain, prefix, id }, wanted) {
  return [name, domain, prefix, id].some((one) => String(one ?? "").toLowerCase().includes(wanted));
}

/** What may be done to one object; what cannot be undone is asked twice. @param {{row: Row, actions: Action[], onDone: (action: Action) => void}} props */
function Actions({ row, actions, onDone }) {
  const [asked, setAsked] = useState(/** @type {Action | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [doing, setDoing] = useState("");
  const run = async (/** @type {Action} */ action) => {
    if (doing) return;
    setAsked(null);
    setError(null);
    setDoing(action.label);
    try {
      await action.run(row);
      if (!action.isOnPage) onDone(action);
    } catch (refusal) {
      setError(refusal);
    }
    setDoing("");
  };
  const name = row["name"] || row["prefix"] || row["id"]; // "Delete" alone is that of any row
  if (asked) return html`<span class="ask">${asked.confirm} <button type="button" aria-label=${`${asked.label} ${name}`} class=${asked.isDanger ? "danger" : "primary"} onClick=${(/** @type {MouseEvent} */ { detail }) => detail > 1 || run(asked)}>${asked.label}</button> <button type="button" class="quiet" data-next onClick=${() => setAsked(null)}>Cancel</button></span>`;
  const offered = actions.filter(({ isOffered }) => !isOffered || isOffered(row));
  return html`<span class="ask offered">${error != null && html`<span class="refusal wrap" role="alert">${explain(error).title}</span>`}${offered.map((action) => html`<button key=${action.label} type="button" aria-label=${`${action.label} ${name}`} class=${`quiet ${action.isDanger ? "danger" : ""}`} onClick=${() => (action.confirm ? setAsked(action) : run(action))}>${doing === action.label ? `${doing} …` : action.label}</button>`)}</span>`;
}

/** An object with its values to be changed. @param {{kind: keyof import("../../api/admin.js").Changes, noun: string, fields: Field[], row: Row, onDone: (row: Row) => void, onCancel: () => void}} props */
function Changed({ kind, noun, fields, row, onDone, onCancel }) {
  const root = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => root.current?.querySelector("input")?.focus(), []);
  return html`<section class="card new" ref=${root} aria-label=${`Change ${noun}`}><h2 class="pad">Change <bdi>${row["name"]}</bdi></h2>
    <${ObjectForm} name=${`changed ${row["id"]}`} fields=${fields} row=${row} label="Save" onCancel=${onCancel} save=${async (/** @type {Row} */ values) => onDone(await change(kind, row["id"], values))} /></section>`;
}
