/** A button that opens a panel: by Escape it closes and gives back the focus, and where the focus or a click goes elsewhere. */

import { html } from "../html.js";
import { useEffect, useLayoutEffect, useRef } from "../vendor/hooks.js";
import { PanelName, useDraft } from "./draft.js";

const EDGE_PX = 7;

/**
 * @param {{label: any, title?: string, className?: string, panelClass?: string, shortcut?: string,
 *   align?: "start" | "end", openAtFirst?: boolean, draft?: string, children: (close: () => void) => any}} props  `draft`: the name by which it is open again, with what was entered, after a session has ended
 */
export function Popover({ label, title, className = "", panelClass = "", shortcut, align = "start", openAtFirst = false, draft = "", children }) {
  const [isOpen, setOpen] = useDraft(draft, () => openAtFirst);
  const root = useRef(/** @type {HTMLDivElement | null} */ (null));
  const close = () => {
    setOpen(false);
    root.current?.querySelector("button")?.focus();
  };
  useEffect(() => {
    if (!isOpen) return undefined;
    const onPointer = (/** @type {Event} */ event) => {
      if (!root.current?.contains(/** @type {Node} */ (event.target))) setOpen(false);
    };
    addEventListener("pointerdown", onPointer);
    return () => removeEventListener("pointerdown", onPointer);
  }, [isOpen]);
  useLayoutEffect(() => {
    if (!isOpen) return;
    // At once: what comes later would take the focus from where a first key or click has put it meanwhile.
    const first = root.current?.querySelector('.panel input, .panel select, .panel [role=listbox][tabindex="0"], .panel button, .panel a');
    if (first instanceof HTMLElement) first.focus();
  }, [isOpen]);
  useEffect(() => {
    const panel = root.current?.querySelector(".panel");
    if (!isOpen || !(panel instanceof HTMLElement)) return undefined;
    const observer = new ResizeObserver(() => keepInWindow(panel)); // what it holds may come later, or change
    observer.observe(panel);
    return () => observer.disconnect();
  }, [isOpen]);
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !isOpen || event.isComposing) return; // an input method has an Escape of its own
    event.stopPropagation();
    close();
  };
  const onFocusOut = (/** @type {FocusEvent} */ { relatedTarget }) => {
    if (relatedTarget instanceof Node && !root.current?.contains(relatedTarget)) setOpen(false);
  };
  return html`<div class="popover" ref=${root} onKeyDown=${onKeyDown} onFocusOut=${onFocusOut}>
    <button type="button" class=${className} title=${title} aria-haspopup="dialog" aria-expanded=${isOpen}
      data-shortcut=${shortcut} onClick=${() => setOpen(!isOpen)}>${label}</button>
    ${isOpen && html`<div class=${`panel ${align} ${panelClass}`} role="dialog" aria-label=${title}><${PanelName.Provider} value=${draft}>${children(close)}<//></div>`}
  </div>`;
}

/** Move a panel that would reach beyond the window: a browser may have scrolled there, to what has the focus. @param {HTMLElement} panel */
function keepInWindow(panel) {
  panel.style.translate = "";
  const { left, right } = panel.getBoundingClientRect();
  const beyond = Math.min(0, document.documentElement.clientWidth - EDGE_PX - right - scrollX);
  panel.style.translate = `${Math.max(EDGE_PX - left - scrollX, beyond)}px`;
}
