/** The audit log: who changed what, newest first, and what exactly. */

import { timezone } from "../../app_state.js";
import { auditLines } from "../../api/admin.js";
import { DataTable } from "../../charts/data_table.js";
import { useLoad } from "../../controls/load.js";
import { Empty, Failure, Skeleton } from "../../controls/messages.js";
import { html } from "../../html.js";
import { changedFields, subjectOf } from "../../state/admin/audit.js";
import { datetime } from "../../state/format.js";
import { useState } from "../../vendor/hooks.js";

/** @typedef {Record<string, any>} Row */

const LINES = 50;

export function Audit() {
  const [opened] = useState(() => Date.now()); // an answer that was kept would lack what was just changed
  const [older, setOlder] = useState(/** @type {Row[]} */ ([]));
  const [isWhole, setWhole] = useState(false);
  const [failure, setFailure] = useState(/** @type {unknown} */ (null));
  const { value, error, reload } = useLoad(`audit ${opened}`, (signal) => auditLines({ limit: LINES }, signal));
  if (error != null) return html`<${Failure} error=${error} onRetry=${reload} />`;
  if (!value) return html`<section class="card"><${Skeleton} /></section>`;
  if (value.length === 0) return html`<section class="card"><${Empty} title="Nothing was changed yet" /></section>`;
  const lines = [...value, ...older];
  const more = async () => {
    setFailure(null);
    try {
      const next = await auditLines({ limit: LINES, before: lines.at(-1)?.["id"] });
      setOlder([...older, ...next]);
      setWhole(next.length < LINES);
    } catch (refusal) {
      setFailure(refusal);
    }
  };
  return html`<section class="card lines"><h2 class="pad">Who changed what</h2>
    ${lines.map((line) => html`<${Line} key=${line["id"]} line=${line} />`)}
    ${failure != null && html`<${Failure} error=${failure} />`}
    ${value.length === LINES && !isWhole && html`<p class="pad"><button type="button" onClick=${more}>Older changes</button></p>`}</section>`;
}

/** @param {{line: Row}} props */
function Line({ line }) {
  const changes = changedFields(line);
  const columns = [{ key: "field", label: "Field" }, { key: "before", label: "Before" }, { key: "after", label: "After" }];
  return html`<details><summary><b>${line["action"]}</b> <bdi>${subjectOf(line)}</bdi> <span class="faint">${datetime(line["time"], timezone.value)} · by <bdi>${line["by"]}</bdi></span></summary>
    <${DataTable} caption=${`${line["action"]} ${line["object"] ?? ""}`} rows=${changes} columns=${columns} /></details>`;
}
