/** Keeps the focus near where it was when what had it is gone: by keys alone, one would begin at the top of the page again. */

/** What has the focus, and all that it is in. @type {Element[]} */
let path = [];

/** From now on, for the whole page. */
export function keepFocus() {
  addEventListener("pointerdown", () => (path = [])); // who clicks on nothing wants no focus
  addEventListener("focusin", ({ target }) => {
    path = [];
    for (let one = target instanceof Element ? target : null; one; one = one.parentElement) path.push(one);
  });
  const observer = new MutationObserver(() => {
    const [last] = path;
    if (!last || (last.isConnected && !last.matches(":disabled"))) return;
    if (document.activeElement !== document.body && document.activeElement !== last) return; // browsers take it from a disabled button later
    const near = path.find((one) => one !== last && one.isConnected && (one.id === "content" || nextIn(one)));
    const next = near && near.id !== "content" ? nextIn(near) : near;
    if (next instanceof HTMLElement) next.focus({ preventScroll: true });
  });
  observer.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] });
}

/** Where one goes on: in a panel that opened, with what is to be entered. @param {Element} part */
function nextIn(part) {
  const marked = part.querySelector("[data-next]");
  const entry = part.closest(".panel") && part.querySelector('input, [role=listbox][tabindex="0"]');
  return marked ?? (entry || part.querySelector(":is(button, select, a, input):not(:disabled)"));
}
