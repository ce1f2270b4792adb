/** The range of days, its comparison, bucket and time zone. */

import { amend, bounds, compare, firstKey, firstTimes, granularity, navigate, page, table, timezone } from "../app_state.js";
import { rowSpan } from "../api/queries.js";
import { html } from "../html.js";
import { comparedBounds, dayCount, following, isDate, localTimezone, MAX_DAYS, shifted, todayIn } from "../state/dates.js";
import { rangeName } from "../state/format.js";
import { useState } from "../vendor/hooks.js";
import { usePanelDraft } from "./draft.js";
import { OptionList } from "./option_list.js";
import { Popover } from "./popover.js";

/** @typedef {import("../state/page_state.js").PageState} PageState */

const PRESETS = [
  { last: 1, name: "Today" },
  { last: 7, name: "Last 7 days" },
  { last: 14, name: "Last 14 days" },
  { last: 30, name: "Last 30 days" },
  { last: 90, name: "Last 90 days" },
  { last: 365, name: "Last 12 months" },
];
const ALL = "all";
const COMPARES = { previous_period: "the previous period", previous_year: "the previous year", none: "nothing" };
const BUCKETS = { "": "suitable", hourly: "hour", daily: "day", weekly: "week", monthly: "month" };

/** @param {{hasCompare?: boolean, hasGranularity?: boolean}} props */
export function RangePicker({ hasCompare = true, hasGranularity = true }) {
  const { range } = page.value;
  const [isWaiting, setWaiting] = useState(false);
  const preset = "last" in range ? PRESETS.find(({ last }) => last === range.last) : undefined;
  const name = preset?.name ?? ("isAll" in range ? "All" : "last" in range ? `Last ${range.last} days` : rangeName(bounds.value));
  const compared = compare.value === "none" ? null : comparedBounds(bounds.value, compare.value);
  const choose = async (/** @type {PageState["range"]} */ chosen) => {
    if ("isAll" in chosen) {
      setWaiting(true);
      await learnFirst().catch(() => {}); // the view tries again, and says why it failed
      setWaiting(false);
    }
    navigate({ range: chosen });
  };
  return html`<div class="ranges">
    <div class="joined">
      <button type="button" title="Period before ( [ )" aria-label="Period before" disabled=${"isAll" in range} onClick=${() => shiftRange(-1)}>‹</button>
      <${Popover} title="Range of days" draft="range" label=${html`<span aria-busy=${isWaiting}>${isWaiting ? "All …" : name}</span>${!("from" in range) && (preset || "isAll" in range) && html`<small class="wide">${rangeName(bounds.value)}</small>`}`}>
        ${(/** @type {() => void} */ close) => html`<${RangePanel} range=${range} bounds=${bounds.value} onChoose=${(/** @type {PageState["range"]} */ chosen) => (close(), choose(chosen))} />`}
      <//>
      <button type="button" title="Period after ( ] )" aria-label="Period after" disabled=${isLatest()} onClick=${() => shiftRange(1)}>›</button>
    </div>
    ${hasCompare && html`<${Popover} title="Compare with" className="quiet" label=${html`<span class="faint">vs</span> ${compared ? rangeName(compared) : "nothing"}`}>
      ${(/** @type {() => void} */ close) => html`<${OptionList} label="Compare with" value=${compare.value}
        options=${Object.entries(COMPARES).filter(([value]) => value !== "previous_period" || !("isAll" in range)).map(([value, words]) => ({ value, label: `Compare with ${words}` }))}
        onChoose=${(/** @type {any} */ value) => (navigate({ compare: value }), close())} />`}
    <//>`}
    ${hasGranularity && html`<${Popover} title="Bucket of the chart" className="quiet" label=${html`<span class="faint">by</span> ${BUCKETS[granularity.value]}`}>
      ${(/** @type {() => void} */ close) => html`<${OptionList} label="Bucket" value=${page.value.granularity}
        options=${Object.entries(BUCKETS).map(([value, label]) => ({ value, label: `By ${label}${value ? "" : " bucket"}` }))}
        onChoose=${(/** @type {any} */ value) => (navigate({ granularity: value }), close())} />`}
    <//>`}
    <${Popover} title="Time zone" align="end" className="quiet" label=${timezone.value.replaceAll("_", " ")}>
      ${(/** @type {() => void} */ close) => html`<${OptionList} label="time zones" isSearchable=${true} value=${timezone.value} options=${zones()}
        onChoose=${(/** @type {string} */ value) => (navigate({ timezone: value }), close())} />`}
    <//>
  </div>`;
}

/** @param {{range: PageState["range"], bounds: import("../state/dates.js").Bounds, onChoose: (range: PageState["range"]) => void}} props */
export function RangePanel({ range, bounds: { startDate, endDate }, onChoose }) {
  const [from, setFrom] = usePanelDraft("from", () => startDate);
  const [to, setTo] = usePanelDraft("to", () => endDate);
  const days = isDate(from) && isDate(to) ? dayCount({ startDate: from, endDate: to }) : NaN;
  const problem = days < 1 ? "The last day is before the first" : days > MAX_DAYS ? "Ten years at most" : "";
  const isRange = days >= 1 && days <= MAX_DAYS;
  return html`<div class="range-panel">
    <${OptionList} label="Range" value=${"isAll" in range ? ALL : "last" in range ? String(range.last) : ""}
      options=${[...PRESETS.map(({ last, name }) => ({ value: String(last), label: name })), { value: ALL, label: "All" }]}
      onChoose=${(/** @type {string} */ last) => onChoose(last === ALL ? { isAll: true } : { last: Number(last) })} />
    <form onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), isRange && onChoose({ from, to }))}>
      <label>From <input type="date" value=${from} onInput=${(/** @type {any} */ event) => setFrom(event.target.value)} /></label>
      <label>To <input type="date" value=${to} onInput=${(/** @type {any} */ event) => setTo(event.target.value)} /></label>
      <button type="submit" class="primary" disabled=${!isRange}>Show these days</button>
      ${problem && html`<small class="refusal" role="status">${problem}</small>`}
    </form>
  </div>`;
}

/** Find out where all days of the view begin. @param {AbortSignal} [signal] */
export async function learnFirst(signal) {
  const [key, website, of] = [firstKey.value, page.value.website, table.value];
  const { first } = await rowSpan(website, signal, of);
  firstTimes.value = { ...firstTimes.value, [key]: first };
}

/** Move the range by its own length, but not into the future, nor before all days. @param {1 | -1} step */
export function shiftRange(step) {
  if (step === 1 ? isLatest() : "isAll" in page.value.range) return;
  const { startDate, endDate } = step === 1 ? following(bounds.value, todayIn(timezone.value)) : shifted(bounds.value, step);
  navigate({ range: { from: startDate, to: endDate } });
}

function isLatest() {
  return bounds.value.endDate >= todayIn(timezone.value);
}

/** All time zones, that of this browser first. */
export function zones() {
  const known = Intl.supportedValuesOf("timeZone");
  const first = [...new Set([localTimezone(), "UTC"])];
  return [...first, ...known.filter((zone) => !first.includes(zone))].map((value) => ({ value, label: value.replaceAll("_", " ") }));
}

/** Write range and zone into the URL, so that it means the same to everybody who opens it. */
export function settleZone() {
  if (!page.value.timezone) amend({ timezone: localTimezone() });
}
