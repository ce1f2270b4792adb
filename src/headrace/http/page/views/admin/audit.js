/** The audit log: who changed what, newest first, and what exactly. */

import { timezone } from "../../app_state.js";
import { auditLines } from "../../api/admin.js";
import { DataTable } from "../../charts/data_table.js";
import { useLoad } from "../../controls/load.js";
import { Empty, Failure, Skeleton } from "../../controls/messages.js";
import { html } from "../../html.js";
import { changedFields, subjectOf } from "../../state/admin/audit.js";
import { datetime } from "../../state/format.js";
import { useEffect, useRef, useState } from "../../vendor/hooks.js";

/** @typedef {import("../../api/admin.js").AuditLine} AuditLine */

/** Of each page; one more is asked for, to know whether there is another. */
const LINES = 50;

export function Audit() {
  const [opened] = useState(() => Date.now()); // an answer that was kept would lack what was just changed
  const [older, setOlder] = useState(/** @type {AuditLine[]} */ ([]));
  const [hasMore, setMore] = useState(true);
  const isBusy = useRef(false);
  const [failure, setFailure] = useState(/** @type {unknown} */ (null));
  const { value, error, reload } = useLoad(`audit ${opened}`, (signal) => auditLines({ limit: LINES + 1 }, signal));
  useEffect(() => {
    setOlder([]); // there may be a gap between them and lines that were loaded again
    setMore(true);
  }, [value]);
  if (error != null) return html`<${Failure} error=${error} onRetry=${reload} />`;
  if (!value) return html`<section class="card"><${Skeleton} /></section>`;
  if (value.length === 0) return html`<section class="card"><${Empty} title="Nothing was changed yet" /></section>`;
  const lines = [...value.slice(0, LINES), ...older];
  const more = async () => {
    if (isBusy.current) return; // a second click would show the same lines again
    isBusy.current = true;
    setFailure(null);
    try {
      const next = await auditLines({ limit: LINES + 1, before: lines.at(-1)?.id });
      setOlder([...older, ...next.slice(0, LINES)]);
      setMore(next.length > LINES);
    } catch (refusal) {
      setFailure(refusal);
    }
    isBusy.current = false;
  };
  return html`<section class="card lines"><h2 class="pad">Who changed what</h2>
    ${lines.map((line) => html`<${Line} key=${line.id} line=${line} />`)}
    ${failure != null && html`<${Failure} error=${failure} onRetry=${more} />`}
    ${value.length > LINES && (hasMore ? html`<p class="pad"><button type="button" onClick=${more}>Older changes</button></p>` : html`<p class="pad faint">These are all changes.</p>`)}</section>`;
}

/** @param {{line: AuditLine}} props */
function Line({ line }) {
  const changes = changedFields(line);
  const columns = [{ key: "field", label: "Field" }, { key: "before", label: "Before" }, { key: "after", label: "After" }];
  return html`<details><summary><b>${line.action}</b> <bdi>${subjectOf(line)}</bdi> <span class="faint">${datetime(line.time, timezone.value)} · by <bdi>${line.by}</bdi></span></summary>
    <${DataTable} caption=${`${line.action} ${line.object ?? ""}`} rows=${changes} columns=${columns} /></details>`;
}
