/** Saved queries in Explore: open one, save what is shown under a name, delete one. */

import { deleteSaved, savedBody, savedQueries, saveQuery } from "../../api/saved.js";
import { Copyable } from "../../controls/copyable.js";
import { usePanelDraft } from "../../controls/draft.js";
import { useLoad } from "../../controls/load.js";
import { Empty, explain, Failure, Skeleton } from "../../controls/messages.js";
import { OptionList } from "../../controls/option_list.js";
import { html } from "../../html.js";
import { ago } from "../../state/format.js";
import { useState } from "../../vendor/hooks.js";

/** @typedef {import("../../state/query_body.js").CustomBody} CustomBody */
/** @typedef {import("../../api/saved.js").SavedToken} SavedToken */

const NAME = "[a-z0-9\\-]{1,64}";

/** @typedef {{website: string, body: CustomBody | null, onOpen: (body: CustomBody) => void, onSaved: (saved: SavedToken, Note: typeof SavedNote) => void}} PanelProps  `Note` shows what was saved */

/** @param {PanelProps} props */
export function Panel({ website, body, onOpen, onSaved }) {
  const [opened] = useState(() => Date.now()); // an answer that was kept would lack what was saved meanwhile
  const [name, setName] = usePanelDraft("name", () => "");
  const [failure, setFailure] = useState(/** @type {unknown} */ (null));
  const { value, error, reload } = useLoad(`saved ${website} ${opened}`, (signal) => savedQueries(website, signal));
  const attempt = (/** @type {() => Promise<void>} */ work) => {
    setFailure(null);
    work().catch(setFailure);
  };
  const open = (/** @type {string} */ chosen) => attempt(async () => onOpen(await savedBody(website, chosen)));
  const save = () => attempt(async () => {
    if (body) onSaved(await saveQuery(website, name, body), SavedNote);
  });
  const remove = () => attempt(async () => {
    await deleteSaved(website, name);
    setName("");
    reload();
  });
  if (error != null) return html`<${Failure} error=${error} onRetry=${reload} />`;
  if (!value) return html`<${Skeleton} lines=${3} />`;
  const isKnown = value.some((saved) => saved.name === name);
  return html`<div class="saved">
    ${value.length === 0 ? html`<${Empty} title="No saved query yet">A saved query has an address of its own, for dashboards and spreadsheets.<//>` : html`<${OptionList} label="saved queries" isSearchable=${value.length > 8} options=${value.map((saved) => ({ value: saved.name, hint: ago(saved.updated) }))} onChoose=${open} />`}
    <form class="value-form" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), save())}>
      <label>Save what is shown as <input required pattern=${NAME} title="Small letters, digits and hyphens" placeholder="top-pages" autocomplete="off" value=${name} onInput=${(/** @type {any} */ event) => setName(event.target.value)} /></label>
      <p class="actions"><button type="submit" class="primary" disabled=${!body || !name}>${isKnown ? "Replace" : "Save"}</button>
        ${isKnown && html`<button type="button" class="quiet danger" onClick=${remove}>Delete it</button>`}</p>
      ${failure != null && html`<p class="refusal" role="alert">${explain(failure).title}</p>`}</form></div>`;
}

/** What became of saving, with the address of the answer. @param {{saved: SavedToken, onClose: () => void}} props */
function SavedNote({ saved, onClose }) {
  return html`<section class="saved-note" role="status"><p><strong>Saved as <bdi>${saved.name}</bdi>.</strong>${" "}
      ${saved.token ? "Anyone who has this address can read the answer of this query, and nothing else. It is shown this once. Its ending may also be csv, arrow, parquet or ndjson." : "Addresses that were given away before answer the new query. This one needs a key."}</p>
    <${Copyable} text=${saved.url} label="Copy address" /><button type="button" class="quiet" onClick=${onClose}>Close</button></section>`;
}
