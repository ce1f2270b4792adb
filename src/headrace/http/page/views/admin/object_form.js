/** A form of an object of administration: a new one, or one that is changed. */

import { Chips } from "../../controls/chips.js";
import { useDraft } from "../../controls/draft.js";
import { explain } from "../../controls/messages.js";
import { OptionList } from "../../controls/option_list.js";
import { Popover } from "../../controls/popover.js";
import { html } from "../../html.js";
import { useRef, useState } from "../../vendor/hooks.js";

/** @typedef {Record<string, any>} Row */
/** @typedef {import("../../controls/option_list.js").Option} Option */
/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {string} [hint]
 * @property {boolean} [isRequired]
 * @property {boolean} [isList]  the value is a list; as a text, with commas
 * @property {string} [type]  of the input
 * @property {string[]} [options]  all of them are shown, and several may be chosen
 * @property {(values: Row) => Option[]} [choices]  one of them is chosen, or several where it is a list
 * @property {string} [none]  what it means that none of the choices is chosen
 * @property {(values: Row) => boolean} [isOffered]
 */

/** @param {{name: string, fields: Field[], row?: Row, label: string, save: (values: Row) => Promise<unknown>, onCancel?: () => void}} props  `name` is that of its draft; `save` gets what was entered */
export function ObjectForm({ name, fields, row = {}, label, save, onCancel }) {
  const [values, setValues] = useDraft(name, () => /** @type {Row} */ ({}));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const isBusy = useRef(false);
  const [isSending, setSending] = useState(false);
  const offered = fields.filter(({ isOffered }) => !isOffered || isOffered(values));
  const onSubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (isBusy.current) return; // a second click would create another object
    setError(null);
    isBusy.current = true;
    setSending(true);
    try {
      await save(entered(offered, values, row));
      setValues({});
    } catch (refusal) {
      setError(refusal);
    }
    isBusy.current = false;
    setSending(false);
  };
  return html`<form onSubmit=${onSubmit}>
    ${offered.map((field) => html`<${Entry} key=${field.name} field=${field} values=${values} row=${row} onChange=${(/** @type {unknown} */ value) => setValues({ ...values, [field.name]: value })} />`)}
    ${error != null && html`<p class="refusal" role="alert">${explain(error).title}</p>`}
    <p class="actions"><button type="submit" class="primary">${isSending ? `${label} …` : label}</button>${onCancel && html`<button type="button" class="quiet" onClick=${onCancel}>Cancel</button>`}</p></form>`;
}

/** The values that were entered, as the API takes them; an empty one takes a value away. @param {Field[]} fields @param {Row} values @param {Row} row */
function entered(fields, values, row) {
  return Object.fromEntries(fields.flatMap((field) => {
    const value = valueOf(field, values);
    return value === undefined || (value === "" && !row[field.name]) ? [] : [[field.name, value]];
  }));
}

/** @param {Field} field @param {Row} values */
function valueOf({ name, isList, choices }, values) {
  const value = values[name];
  if (choices && !isList) return choices(values).some((choice) => choice.value === value) ? value : undefined;
  if (!isList || typeof value !== "string") return value;
  return value.split(",").map((part) => part.trim()).filter(Boolean);
}

/** @param {{field: Field, values: Row, row: Row, onChange: (value: unknown) => void}} props */
function Entry({ field, values, row, onChange }) {
  const { name, label, hint, type = "text", isRequired, isList, options, choices, none } = field;
  const words = html`<span>${label}${hint && html` <span class="faint">${hint}</span>`}</span>`;
  const chosen = /** @type {string[]} */ (values[name] ?? []);
  const toggle = (/** @type {string} */ option) => onChange(chosen.includes(option) ? chosen.filter((other) => other !== option) : [...chosen, option]);
  const onInput = (/** @type {any} */ event) => onChange(event.target.value);
  if (options) return html`<fieldset><legend>${words}</legend><span class="choices">${options.map((option) => html`<label key=${option}><input type="checkbox" checked=${chosen.includes(option)} onChange=${() => toggle(option)} /> ${option}</label>`)}</span></fieldset>`;
  if (choices && isList) return html`<fieldset><legend>${words}</legend><${Several} label=${label} chosen=${chosen} choices=${choices(values)} onToggle=${toggle} /></fieldset>`;
  if (choices) return html`<label>${words}<select name=${name} value=${valueOf(field, values) ?? row[name] ?? ""} onChange=${onInput}>${!row[name] && html`<option value="">${none}</option>`}${choices(values).map((choice) => html`<option key=${choice.value} value=${choice.value}>${choice.label}</option>`)}</select></label>`;
  return html`<label>${words}<input name=${name} autocomplete="off" type=${type} required=${isRequired} value=${values[name] ?? [row[name] ?? ""].flat().join(", ")} onInput=${onInput} /></label>`;
}

/** @param {{label: string, chosen: string[], choices: Option[], onToggle: (value: string) => void}} props */
function Several({ label, chosen, choices, onToggle }) {
  const values = chosen.map((value) => choices.find((choice) => choice.value === value) ?? { value });
  return html`<span class="chips"><${Chips} values=${values} onRemove=${onToggle} /><${Popover} title=${`Add to ${label.toLowerCase()}`} label="Add">
    ${(/** @type {() => void} */ close) => html`<${OptionList} label=${label.toLowerCase()} isSearchable=${true} options=${choices.filter(({ value }) => !chosen.includes(value))} onChoose=${(/** @type {string} */ value) => (close(), onToggle(value))} />`}<//></span>`;
}
