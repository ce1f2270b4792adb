/** The keyboard: `/` to filter, `g` and a letter to go somewhere, `[` and `]` for periods, `?` for this list. */

import { follow, viewUrl } from "../app_state.js";
import { html } from "../html.js";
import { useEffect, useRef } from "../vendor/hooks.js";
import { shiftRange } from "./range_picker.js";

/** @typedef {{view: string, name: string, key: string}} Entry */

/** @param {{entries: Entry[]}} props */
export function Shortcuts({ entries }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    let isGoing = false;
    const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
      const { key, target } = event;
      if (event.ctrlKey || event.metaKey || event.altKey || isTyped(target)) return;
      const entry = isGoing ? entries.find((one) => one.key === key) : undefined;
      isGoing = key === "g" && !isGoing;
      if (entry) follow(viewUrl(entry.view));
      else if (key === "?") dialog.current?.showModal();
      else if (key === "/" && openFilter()) event.preventDefault();
      else if ((key === "[" || key === "]") && document.querySelector(".ranges")) shiftRange(key === "[" ? -1 : 1);
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  const lines = [["/", "Filter or search"], ["[", "Period before"], ["]", "Period after"], ...entries.map(({ key, name }) => [`g ${key}`, name]), ["Esc", "Close what is open"], ["?", "This list"]];
  return html`<dialog ref=${dialog} class="keys" aria-label="Keyboard"><form method="dialog"><h2>Keyboard</h2>
    <dl>${lines.map(([keys, words]) => html`<div key=${keys}><dt>${String(keys).split(" ").map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dt><dd>${words}</dd></div>`)}</dl>
    <button class="primary">Close</button></form></dialog>`;
}

/** @param {EventTarget | null} target */
function isTyped(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function openFilter() {
  const found = document.querySelector('[data-shortcut="/"]');
  if (!(found instanceof HTMLElement)) return false;
  found.focus();
  if (found instanceof HTMLButtonElement && found.getAttribute("aria-expanded") !== "true") found.click();
  return true;
}
