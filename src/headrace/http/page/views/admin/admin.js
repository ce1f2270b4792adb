/** Administration: what is stored, what was erased, and what a key with `manage:config` may change. */

import { page, session, timezone, viewUrl } from "../../app_state.js";
import { storage } from "../../api/admin.js";
import { DataTable } from "../../charts/data_table.js";
import { useLoad } from "../../controls/load.js";
import { Empty, Failure, Skeleton } from "../../controls/messages.js";
import { html } from "../../html.js";
import { bytes, datetime, exactNumber } from "../../state/format.js";
import { keptWords } from "../../state/admin/retention.js";
import { Audit } from "./audit.js";
import { Erasures } from "./erasures.js";
import { Keys, Organizations, Websites } from "./objects.js";
import { Quarantine } from "./quarantine.js";
import { Retention } from "./retention.js";

/** @type {Record<string, {name: string, scope: string, view: () => any, isOfWebsite?: true}>} */
const TABS = {
  storage: { name: "Storage", scope: "read:data", view: Storage, isOfWebsite: true },
  erasures: { name: "Erasures", scope: "manage:data", view: Erasures, isOfWebsite: true },
  websites: { name: "Websites", scope: "manage:config", view: Websites },
  keys: { name: "Keys", scope: "manage:config", view: Keys },
  organizations: { name: "Organizations", scope: "manage:config", view: Organizations },
  quarantine: { name: "Quarantine", scope: "manage:config", view: Quarantine },
  audit: { name: "Audit log", scope: "manage:config", view: Audit },
};

export function Admin() {
  const scopes = session.value?.scopes ?? ["read:data"];
  const allowed = Object.entries(TABS).filter(([, { scope, isOfWebsite }]) => scopes.includes(scope) && (page.value.website || !isOfWebsite));
  const [chosen, tab] = allowed.find(([name]) => name === page.value.item) ?? allowed[0] ?? [];
  if (!tab) return html`<section class="card"><${Empty} title="No website yet">This session may read websites, and there is none.<//></section>`;
  return html`<nav class="tabs pages" aria-label="Administration">${allowed.map(([name, one]) => html`<a key=${name} href=${viewUrl("admin", name)} aria-current=${name === chosen ? "page" : undefined}>${one.name}</a>`)}</nav>
    <${tab.view} key=${tab.isOfWebsite ? `${chosen} ${page.value.website}` : chosen} />`;
}

function Storage() {
  const id = page.value.website;
  const { value, error, reload } = useLoad(`storage ${id}`, (signal) => storage(id, signal));
  if (error != null) return html`<${Failure} error=${error} onRetry=${reload} />`;
  if (!value) return html`<section class="card"><${Skeleton} lines=${4} /></section>`;
  const time = (/** @type {string} */ iso) => (iso ? datetime(iso, timezone.value) : "–");
  const number = { isNumber: true, format: exactNumber };
  const stored = value.length === 0 ? html`<${Empty} title="Nothing is stored yet" />` : html`<${DataTable} caption="What is stored" isStacked=${true} rows=${value} columns=${[
    { key: "table", label: "Table" },
    { key: "rows", label: "Rows", ...number, hasBar: true },
    { key: "bytes", label: "On disk", isNumber: true, format: bytes },
    { key: "expired", label: "Expired", ...number },
    { key: "oldest", label: "Oldest", format: time },
    { key: "newest", label: "Newest", format: time },
    { key: "retainDays", label: "Kept", isNumber: true, format: keptWords },
  ]} />`;
  const mayChange = session.value?.scopes.includes("manage:config");
  return html`<section class="card">${stored}</section>${mayChange && html`<${Retention} key=${id} onChanged=${reload} />`}`;
}
