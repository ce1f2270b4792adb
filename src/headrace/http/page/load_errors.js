// Says that the page did not load: where one of its modules does not come, none of them runs. A browser may keep
// that it did not, so all of the page is loaded again.
addEventListener("error", ({ target }) => {
  const isNeeded = target instanceof HTMLScriptElement || (target instanceof HTMLLinkElement && target.rel === "stylesheet");
  if (!isNeeded) return;
  const show = () => {
    const note = document.getElementById("unloaded");
    if (!(note instanceof HTMLTemplateElement) || document.querySelector(".unloaded")) return;
    document.body.prepend(note.content.cloneNode(true));
    document.querySelector(".unloaded button")?.addEventListener("click", () => location.reload());
    addEventListener("online", () => location.reload());
  };
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", show);
  else show();
}, true);
