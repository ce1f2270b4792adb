/** A list to choose from, with a field that narrows it and takes what is not in it. */

import { html } from "../html.js";
import { useEffect, useId, useRef, useState } from "../vendor/hooks.js";
import { usePanelDraft } from "./draft.js";

/** @typedef {{value: string, label?: string, hint?: string, isFoundByHint?: boolean}} Option */

const MAX_SHOWN = 200;
/** The code of a key that an input method takes; Safari says so of Enter by this alone. */
const COMPOSING = 229;

/**
 * @param {{options: Option[], value?: string, label: string, isSearchable?: boolean, takesOther?: boolean | "last",
 *   isLoading?: boolean, problem?: string, onSearch?: (text: string) => void, onChoose: (value: string) => void}} props  `takesOther`: what was typed, before what is found, or "last" where it rather is a part of a name
 */
export function OptionList({ options, value, label, isSearchable = false, takesOther = false, isLoading = false, problem = "", onSearch, onChoose }) {
  const [search, setSearch] = usePanelDraft(`search of ${label}`, () => "");
  const [pointed, setAt] = useState(() => Math.max(0, options.slice(0, MAX_SHOWN).findIndex((option) => option.value === value)));
  const id = useId();
  const list = useRef(/** @type {HTMLUListElement | null} */ (null));
  const wanted = search.trim().toLowerCase();
  const found = options.filter(({ value: own, label: words = "", hint, isFoundByHint }) => !wanted || `${words} ${own} ${isFoundByHint ? hint : ""}`.toLowerCase().includes(wanted));
  const isOther = takesOther && search !== "" && !options.some((option) => option.value === search);
  const typed = isOther ? [{ value: search, label: `“${search}”`, hint: "as typed" }] : [];
  const listed = found.slice(0, MAX_SHOWN);
  const shown = takesOther === "last" ? [...listed, ...typed] : [...typed, ...listed];
  const at = Math.max(0, Math.min(pointed, shown.length - 1)); // there may be fewer options than before
  const note = shown.length === 0 ? problem || (isLoading ? "Loading" : "Nothing found") : found.length > MAX_SHOWN ? `${found.length - MAX_SHOWN} more: search for them` : "";
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [at]);
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.isComposing || event.keyCode === COMPOSING) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const chosen = shown[at];
    if (step) setAt(Math.min(shown.length - 1, Math.max(0, at + step)));
    else if (event.key !== "Enter") return;
    else if (chosen) onChoose(chosen.value);
    event.preventDefault(); // Enter would also send a form that the list is in
  };
  // Browsers also say that a pointer moves where the list scrolls below it, as by the keys.
  const onPointerMove = (/** @type {number} */ index) => (/** @type {PointerEvent} */ { movementX, movementY }) => (movementX || movementY) && setAt(index);
  const onInput = (/** @type {any} */ event) => {
    setSearch(event.target.value);
    setAt(0);
    onSearch?.(event.target.value);
  };
  return html`<div class="options" onKeyDown=${onKeyDown}>
    ${isSearchable && html`<input type="search" placeholder="Search" aria-label=${`Search ${label}`} role="combobox" aria-expanded="true" aria-autocomplete="list"
      aria-controls=${id} aria-activedescendant=${shown.length ? `${id}-${at}` : undefined} autocomplete="off" value=${search} onInput=${onInput} />`}
    <ul id=${id} role="listbox" aria-label=${label} ref=${list} tabindex=${isSearchable ? -1 : 0} aria-activedescendant=${!isSearchable && shown.length ? `${id}-${at}` : undefined}>
      ${shown.map((option, index) => html`<li key=${option.value} id=${`${id}-${index}`} role="option" aria-selected=${index === at}
        class=${option.value === value ? "chosen" : ""} onPointerMove=${onPointerMove(index)} onClick=${() => onChoose(option.value)}>
        <span>${option.label ?? option.value}</span>${option.hint && html`<small>${option.hint}</small>`}</li>`)}
    </ul>
    <p class="more" role="status">${note}</p>
  </div>`;
}
