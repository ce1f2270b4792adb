/** The keyboard: `/` to filter, `g` and a letter to go somewhere, `[` and `]` for periods, `?` for this list. Who dictates can switch all of them off. */

import { follow, viewUrl } from "../app_state.js";
import { html } from "../html.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";
import { shiftRange } from "./range_picker.js";

/** @typedef {{view: string, name: string, key: string}} Entry */

const OFF_KEY = "headrace_keys_off";

/** @param {{entries: Entry[]}} props */
export function Shortcuts({ entries }) {
  const [isOff, setOff] = useState(isSwitchedOff);
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    let isGoing = false;
    const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
      const { key, target } = event;
      if (isOff || event.ctrlKey || event.metaKey || event.altKey || isTyped(target)) return;
      const entry = isGoing ? entries.find((one) => one.key === key) : undefined;
      isGoing = key === "g" && !isGoing;
      if (entry) follow(viewUrl(entry.view));
      else if (key === "?") dialog.current?.showModal();
      else if (key === "/" && openFilter()) event.preventDefault();
      else if ((key === "[" || key === "]") && document.querySelector(".ranges")) shiftRange(key === "[" ? -1 : 1);
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [isOff]);
  const toggle = () => {
    switchOff(!isOff);
    setOff(!isOff);
  };
  const lines = [["/", "Filter or search"], ["[", "Period before"], ["]", "Period after"], ...entries.map(({ key, name }) => [`g ${key}`, name]), ["Esc", "Close what is open"], ["?", "This list"]];
  return html`<button type="button" class="quiet keyboard" aria-haspopup="dialog" title="Keys" onClick=${() => dialog.current?.showModal()}><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M1.5 4h13v8h-13zM4 6.5h.1M8 6.5h.1M12 6.5h.1M5 9.5h6" /></svg><span>Keys</span></button>
  <dialog ref=${dialog} class="keys" aria-label="Keyboard"><form method="dialog"><h2>Keyboard</h2>
    <dl>${lines.map(([keys, words]) => html`<div key=${keys}><dt>${String(keys).split(" ").map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dt><dd>${words}</dd></div>`)}</dl>
    <label class="check"><input type="checkbox" checked=${!isOff} onChange=${toggle} /> Use these keys</label>
    <button class="primary">Close</button></form></dialog>`;
}

function isSwitchedOff() {
  try {
    return localStorage[OFF_KEY] === "1";
  } catch {
    return false; // storage may be forbidden
  }
}

/** @param {boolean} isOff */
function switchOff(isOff) {
  try {
    localStorage[OFF_KEY] = isOff ? "1" : "";
  } catch {
    // It then holds until the page is closed.
  }
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
