/** A chart over time, and the same figures as a table behind a button. */

import { html } from "../html.js";
import { useState } from "../vendor/hooks.js";
import { DataTable } from "./data_table.js";
import { TimeSeries } from "./timeseries.js";

/**
 * @param {{head: any, caption: string, rows: Record<string, any>[], columns: import("./data_table.js").TableColumn[],
 *   chart: Omit<Parameters<typeof TimeSeries>[0], "label">}} props  `head` stands beside the button
 */
export function ChartOrTable({ head, caption, rows, columns, chart }) {
  const [isTable, setTable] = useState(false);
  return html`<div class="chart-head">${head}
      <button type="button" class="quiet" onClick=${() => setTable(!isTable)}>${isTable ? "Chart" : "Table"}</button></div>
    ${isTable ? html`<${DataTable} caption=${caption} rows=${rows} columns=${columns} />` : html`<${TimeSeries} label=${caption} ...${chart} />`}`;
}
