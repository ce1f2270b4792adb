/** Rows as a table; numbers have a bar in their cell. */

import { html } from "../html.js";
import { exactNumber } from "../state/format.js";

/** @typedef {{key: string, label: string, isNumber?: boolean, hasBar?: boolean, isMinor?: boolean, isSortable?: boolean, before?: string, format?: (value: any, row: Record<string, any>) => any}} TableColumn  `isMinor`: not in narrow windows; `before`: the column that is shown below the value there */

/** @typedef {{field: string, direction?: string}} Order */

/** @param {{columns: TableColumn[], rows: Record<string, any>[], caption: string, totals?: Record<string, any>, isStacked?: boolean, order?: Order, onOrder?: (order: Order) => void}} props  `totals` are a last row; `isStacked`: on a phone, columns are lines */
export function DataTable({ columns, rows, caption, totals, isStacked = false, order, onOrder }) {
  const highest = Object.fromEntries(columns.filter(({ hasBar }) => hasBar).map(({ key }) => [key, Math.max(0, ...rows.map((row) => Number(row[key]) || 0))]));
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}>
    <table class=${`data ${isStacked ? "stacked" : ""} ${columns.length > 4 ? "many" : ""}`}><caption class="hidden">${caption}</caption>
      <thead><tr>${columns.map((column) => html`<${Head} key=${column.key} column=${column} order=${order?.field === column.key ? order : undefined} onOrder=${onOrder} />`)}</tr></thead>
      <tbody>${rows.map((row, index) => html`<tr key=${index}>${columns.map((column) => html`<${Cell} key=${column.key} column=${column} row=${row} highest=${highest[column.key]} />`)}</tr>`)}</tbody>
      ${totals && html`<tfoot><tr>${columns.map((column, index) => html`<td key=${column.key} class=${classOf(column)} data-label=${column.label}>${column.isNumber ? (column.format ?? exactNumber)(totals[column.key], totals) : index === 0 ? "All rows" : ""}</td>`)}</tr></tfoot>`}
    </table></div>`;
}

/** A head that orders the rows: numbers from the highest at first, and the other way round at the next click. @param {{column: TableColumn, order?: Order, onOrder?: (order: Order) => void}} props */
function Head({ column, order, onOrder }) {
  const { key, label, isNumber, isSortable } = column;
  const isDown = order ? order.direction === "desc" : !isNumber;
  const name = html`<bdi>${label}</bdi>`;
  return html`<th scope="col" class=${classOf(column)} aria-sort=${order && (isDown ? "descending" : "ascending")}>${onOrder && isSortable
    ? html`<button type="button" class="link" title=${`Order by ${label}`} onClick=${() => onOrder({ field: key, direction: isDown ? "asc" : "desc" })}>${name}</button>`
    : name}</th>`;
}

/** @param {TableColumn} column */
function classOf({ isNumber, isMinor }) {
  return `${isNumber ? "number" : ""} ${isMinor ? "minor" : ""}`.trim();
}

/** @param {{column: TableColumn, row: Record<string, any>, highest: number | undefined}} props */
function Cell({ column, row, highest }) {
  const value = row[column.key];
  const shown = column.format ? column.format(value, row) : column.isNumber && value != null ? exactNumber(value) : plain(value);
  const share = highest && Number(value) > 0 ? Number(value) / highest : null;
  return html`<td class=${classOf(column)} data-label=${column.label}>${share && html`<i class="cell-bar" style=${{ "--share": share }}></i>`}<bdi title=${typeof value === "string" && typeof shown === "string" ? shown : undefined}>${shown}</bdi>
    ${column.before && html`<small class="was">was ${column.format?.(row[column.before], row)}</small>`}</td>`;
}

/** A value without a format of its own. @param {any} value */
export function plain(value) {
  if (value == null) return html`<span class="faint">not set</span>`;
  return value === "" ? html`<span class="faint">empty</span>` : String(value);
}
