/** The quarantine: what the store rejected and why, the content of each entry, and its retry. */

import { session, timezone } from "../../app_state.js";
import { quarantine, quarantined, retry } from "../../api/admin.js";
import { useLoad } from "../../controls/load.js";
import { Empty, explain, Failure, Skeleton } from "../../controls/messages.js";
import { html } from "../../html.js";
import { counted, datetime } from "../../state/format.js";
import { useState } from "../../vendor/hooks.js";

/** @typedef {import("../../api/admin.js").Entry} QuarantinedEntry */

export function Quarantine() {
  const [opened] = useState(() => Date.now()); // an answer that was kept may name what is stored by now
  const [retried, setRetried] = useState(0);
  const { value, error, reload } = useLoad(`quarantine ${opened}`, quarantine);
  if (error != null) return html`<${Failure} error=${error} onRetry=${reload} />`;
  if (!value) return html`<section class="card"><${Skeleton} lines=${3} /></section>`;
  const onRetried = () => {
    setRetried(retried + 1);
    reload();
  };
  const note = retried > 0 && html`<p class="pad" role="status">${counted(retried, "entry", "entries")} handed to the store again. What it rejects once more comes back under a new id.</p>`;
  if (value.length === 0) return html`<section class="card">${note}<${Empty} title="The quarantine is empty">The store rejected no events.<//></section>`;
  const records = value.filter((entry) => entry.stream === null).length;
  const counts = [[value.length - records, "item", "items"], [records, "record", "records"]].filter(([count]) => count);
  return html`<section class="card lines">${note}
    <h2 class="pad">Rejected by the store: ${counts.map(([count, one, several]) => counted(Number(count), String(one), String(several))).join(", ")}</h2>
    ${value.map((entry) => html`<${Entry} key=${entry.id} entry=${entry} onRetried=${onRetried} />`)}</section>`;
}

/** @param {{entry: QuarantinedEntry, onRetried: () => void}} props */
function Entry({ entry, onRetried }) {
  const [isOpen, setOpen] = useState(false);
  const [isRetrying, setRetrying] = useState(false);
  const [refusal, setRefusal] = useState(/** @type {unknown} */ (null));
  const again = async () => {
    setRetrying(true);
    setRefusal(null);
    try {
      await retry(entry.id);
      onRetried();
    } catch (error) {
      setRefusal(error);
      setRetrying(false);
    }
  };
  const website = session.value?.websites.find(({ id }) => id === entry.website)?.name ?? entry.website;
  return html`<details onToggle=${(/** @type {any} */ event) => setOpen(event.target.open)}>
    <summary><span class="rating poor">${entry.stream ?? "record"}</span> <bdi>${entry.reason}</bdi> <span class="faint">${datetime(entry.set_aside, timezone.value)}${website && html` · <bdi>${website}</bdi>`}</span></summary>
    ${isOpen && html`<${Content} id=${entry.id} />`}
    <p class="pad"><button type="button" disabled=${isRetrying} onClick=${again}>Retry</button></p>
    ${refusal != null && html`<p class="refusal pad" role="alert">${explain(refusal).title}</p>`}</details>`;
}

/** @param {{id: string}} props */
function Content({ id }) {
  const { value, error, reload } = useLoad(`quarantined ${id}`, (signal) => quarantined(id, signal));
  if (error != null) return html`<${Failure} error=${error} onRetry=${reload} />`;
  return value ? html`<pre tabindex="0">${JSON.stringify(value.content, null, 2)}</pre>` : html`<${Skeleton} lines=${3} />`;
}
