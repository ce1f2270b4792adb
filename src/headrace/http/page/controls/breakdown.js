/** A card of tabs, each the most frequent values of a dimension. A click on a value filters by it. */

import { navigate, page } from "../app_state.js";
import { breakdown } from "../api/standard.js";
import { html } from "../html.js";
import { columnWords, hasFilter, toggled } from "../state/filters.js";
import { counted, percent, shortNumber } from "../state/format.js";
import { useId, useState } from "../vendor/hooks.js";
import { useLoad } from "./load.js";
import { Empty, Failure, marked, Skeleton } from "./messages.js";
import { TabPanel, Tabs } from "./tabs.js";

/** @typedef {Record<string, any>} Row */
/**
 * @typedef {object} Tab
 * @property {string} type
 * @property {string} name
 * @property {string[]} columns  what is grouped by
 * @property {string} figure  the alias that rows are compared by
 * @property {string} unit  what the figure counts
 * @property {(value: any) => string} [words]
 * @property {string} moreUrl
 */

/** @param {{tabs: Tab[], request: import("../api/standard.js").OverviewRequest, totals: Row}} props */
export function Breakdown({ tabs, request, totals }) {
  const id = useId();
  const [chosen, setChosen] = useState("");
  const tab = /** @type {Tab} */ (tabs.find(({ type }) => type === chosen) ?? tabs[0]);
  const { granularity: _, compare: __, ...asked } = request;
  const { value, error, isLoading, reload } = useLoad(`breakdown ${tab.type} ${JSON.stringify(asked)}`, () => breakdown(request, tab.type));
  const isOther = value !== undefined && value !== null && value.length > 0 && !(String(tab.columns[0]) in (value[0] ?? {}));
  const rows = isOther ? undefined : value;
  return html`<section ...${marked({ isLoading }, "card breakdown")} aria-label=${tab.name}>
    <header>
      <${Tabs} id=${id} label="Lists" tabs=${tabs.map((one) => [one.type, one.name])} value=${tab.type} onChoose=${setChosen} />
      <small class="faint">${tab.unit}</small>
    </header>
    <${TabPanel} id=${id} value=${tab.type}>
      ${error != null ? html`<${Failure} error=${error} onRetry=${reload} />` : rows === undefined ? html`<${Skeleton} lines=${7} />` : html`<${Rows} tab=${tab} rows=${rows} total=${totals[tab.figure]} />`}
      ${rows && rows.length > 0 && html`<footer><a href=${tab.moreUrl}>All ${tab.name.toLowerCase()} <span aria-hidden="true">→</span></a></footer>`}
    <//>
  </section>`;
}

/** @param {{tab: Tab, rows: Row[] | null, total: number | undefined}} props */
function Rows({ tab, rows, total }) {
  if (rows === null) {
    return html`<${Empty} title="Not with these filters">A filter of this page has no meaning for ${tab.name.toLowerCase()}.<//>`;
  }
  if (rows.length === 0) return html`<${Empty} title=${`No ${tab.name.toLowerCase()} in this range`} />`;
  const highest = Math.max(...rows.map((row) => row[tab.figure]));
  return html`<ol class="ranked">${rows.map((row) => html`<${Line} key=${JSON.stringify(tab.columns.map((name) => row[name]))}
    tab=${tab} row=${row} highest=${highest} total=${total} />`)}</ol>`;
}

/** @param {{tab: Tab, row: Row, highest: number, total: number | undefined}} props */
function Line({ tab, row, highest, total }) {
  const set = tab.columns.filter((name) => row[name]);
  const words = set.map((name) => (tab.words ?? String)(row[name])).join(" · ");
  const value = row[tab.figure];
  const unit = tab.unit.toLowerCase();
  const items = set.map((field) => ({ field, operator: "eq", value: row[field] }));
  const isChosen = items.every((item) => hasFilter(page.value.filters, item));
  const onClick = () => navigate({ filters: items.reduce((filters, item) => (isChosen === hasFilter(filters, item) ? toggled(filters, item) : filters), page.value.filters) });
  return html`<li>
    <button type="button" aria-pressed=${isChosen} onClick=${onClick}
      title=${`${set.map((name) => `${columnWords(name)}: ${row[name]}`).join(", ")}\n${counted(value, unit.replace(/s$/, ""), unit)}${total ? `, ${percent(value / total)}` : ""}`}>
      <i style=${{ "--share": value / highest }}></i><bdi>${words}</bdi>
      <small>${total && value <= total ? percent(value / total) : ""}</small><b>${shortNumber(value)}</b>
    </button></li>`;
}
