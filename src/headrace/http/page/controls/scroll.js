/** Goes back to where one was on the page: browsers try that before a view has its figures, and with them its height. */

/** So rarely is noted where one is: browsers count the changes of a history. */
const PAUSE_MS = 150;
/** For so long what is loaded may move the rest. */
const MAX_MS = 5000;
/** Who does one of these goes somewhere else. */
const OWN_WAYS = ["wheel", "touchstart", "pointerdown", "keydown"];

/** Ends the return that goes on. */
let end = () => {};
let isReturning = false;

/** From now on, for the whole page. */
export function keepScroll() {
  let timer = 0;
  addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(() => isReturning || history.replaceState({ ...history.state, top: scrollY }, ""), PAUSE_MS);
  });
  addEventListener("popstate", ({ state }) => goBack(state?.top ?? 0));
  if (history.state?.top) goBack(history.state.top); // loaded again, or come back to from elsewhere
}

/** Scroll as often as the page changes its height, until somebody does or goes on from there. @param {number} top */
function goBack(top) {
  end();
  const observer = new ResizeObserver(() => ((history.state?.top ?? 0) === top ? scrollTo(0, top) : end()));
  const timer = setTimeout(() => end(), MAX_MS);
  isReturning = true;
  end = () => {
    isReturning = false;
    clearTimeout(timer);
    observer.disconnect();
    for (const name of OWN_WAYS) removeEventListener(name, end);
  };
  for (const name of OWN_WAYS) addEventListener(name, end);
  observer.observe(document.body);
}
