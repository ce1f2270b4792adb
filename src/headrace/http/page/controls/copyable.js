/** A text to be copied, with the button that does it. */

import { html } from "../html.js";
import { useState } from "../vendor/hooks.js";

const SHOWN_MS = 2000;

/** @param {{text: string, label?: string}} props */
export function Copyable({ text, label = "Copy" }) {
  const [done, setDone] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone("Copied");
    } catch {
      setDone("Select it and copy");
    }
    setTimeout(() => setDone(""), SHOWN_MS);
  };
  return html`<div class="copyable"><pre tabindex="0">${text}</pre><button type="button" onClick=${copy}><span aria-live="polite">${done || label}</span></button></div>`;
}
