/** The page: who is signed in, and the view that the URL names. */

import { amend, firstKey, firstTimes, listen, now, page, session, viewUrl, website } from "./app_state.js";
import { whenSignedOut } from "./api/client.js";
import { fetchSession, rightsOf, whenChangedElsewhere } from "./api/session.js";
import { forgetBreakdowns } from "./api/standard.js";
import { announceView, beginLoading, endLoading, SLOW_MS } from "./controls/announce.js";
import { handOverDrafts, keepDrafts } from "./controls/draft.js";
import { keepFocus } from "./controls/focus.js";
import { Guard } from "./controls/guard.js";
import { forget, refresh, useLoad } from "./controls/load.js";
import { Empty, Failure, NotSent, Skeleton } from "./controls/messages.js";
import { learnFirst, settleZone } from "./controls/range_picker.js";
import { keepScroll } from "./controls/scroll.js";
import { html } from "./html.js";
import { useEffect, useState } from "./vendor/hooks.js";
import { render } from "./vendor/preact.js";
import { signal } from "./vendor/signals.js";
import { Overview } from "./views/overview.js";
import { Shell } from "./views/shell.js";
import { SignIn } from "./views/sign_in.js";

/** @typedef {{title: string, hasDays?: true, load: () => Promise<() => any>}} View  `hasDays`: it shows those of the range */

/** Views but for the first are loaded when they are opened. @type {Record<string, View>} */
const VIEWS = {
  overview: { title: "Overview", hasDays: true, load: async () => Overview },
  explore: { title: "Explore", load: async () => (await import("./views/explore/explore.js")).Explore },
  vitals: { title: "Web vitals", hasDays: true, load: async () => (await import("./views/vitals.js")).Vitals },
  errors: { title: "Errors", hasDays: true, load: async () => (await import("./views/errors.js")).Errors },
  funnels: { title: "Funnels", hasDays: true, load: async () => (await import("./views/funnels.js")).Funnels },
  retention: { title: "Retention", hasDays: true, load: async () => (await import("./views/retention.js")).Retention },
  live: { title: "Live", load: async () => (await import("./views/live.js")).Live },
  admin: { title: "Administration", load: async () => (await import("./views/admin/admin.js")).Admin },
  setup: { title: "Setup", load: async () => (await import("./views/setup.js")).Setup },
};

/** @type {Map<string, () => any>} */
const loaded = new Map([["overview", Overview]]);

function Page() {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const ask = () => {
    setError(null);
    fetchSession().then((found) => (session.value = found), setError);
  };
  useEffect(ask, []);
  if (error != null) return html`<main class="lone"><${Failure} error=${error} onRetry=${ask} /></main>`;
  if (session.value === undefined) return html`<${Opening} />`;
  const isPublic = page.value.website !== "" && page.value.website !== refused.value;
  const isWanted = isOfLink.value || (session.value === null && !isPublic);
  return isWanted ? html`<${SignIn} hasEnded=${hasEnded.value} onDone=${() => (isOfLink.value = false)} />` : html`<${Signed} key=${turn.value} />`;
}

/** What is shown until the service says who is signed in, where that takes longer: a flash would only disturb. */
function Opening() {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    beginLoading(false);
    const timer = setTimeout(setSlow, SLOW_MS, true);
    return () => {
      clearTimeout(timer);
      endLoading("loaded");
    };
  }, []);
  return isSlow && html`<main class="lone" aria-busy="true"><h1><img src=${new URL("./icon.svg", import.meta.url).href} alt="" width="28" height="28" /> Headrace</h1><section class="card"><${Skeleton} lines=${4} /></section></main>`;
}

/** Whether the page was opened by a link that signs in: it does so whoever is signed in. */
const isOfLink = signal(hasCode());
/** Changes when another session takes the place of one, whose answers the views still have. */
const turn = signal(0);
/** Whether somebody was signed in until a call was refused. */
const hasEnded = signal(false);

function hasCode() {
  return new URLSearchParams(location.hash.slice(1)).has("code");
}

/** The website that is not public: a call without credentials was refused. */
const refused = signal("");

/** Whether no view was opened yet: browsers say the title of a page that they load. */
let isFirst = true;

function Signed() {
  const { view } = page.value;
  const entry = Object.hasOwn(VIEWS, view) ? VIEWS[view] : undefined;
  const first = session.value?.websites[0];
  useEffect(() => {
    if (!page.value.website && first) amend({ website: first.id });
    settleZone();
  });
  const title = entry?.title ?? "Not found";
  useEffect(() => {
    if (!isFirst) announceView(title);
    isFirst = false;
  }, [title]);
  useEffect(() => {
    document.title = `${title} · ${website.value?.name ?? "Headrace"}`;
  });
  return html`<${Shell} title=${title}>${entry ? html`<${Opened} key=${view} name=${view} entry=${entry} />` : html`<${Empty} title="There is no such page">Choose one from the list.<//>`}<//>`;
}

/** @param {{name: string, entry: View}} props */
function Opened({ name, entry }) {
  const [, setTurn] = useState(0);
  const [isMissing, setMissing] = useState(false);
  const Content = loaded.get(name);
  // All days begin with the first row, and nothing can be asked of them before it is known.
  const isWaiting = entry.hasDays && "isAll" in page.value.range && page.value.website !== "" && !(firstKey.value in firstTimes.value);
  const first = useLoad(isWaiting ? `first of ${firstKey.value}` : "", learnFirst);
  useEffect(() => {
    if (Content) return;
    entry.load().then((component) => (loaded.set(name, component), setTurn(1)), () => setMissing(true));
  }, []);
  if (isMissing) return html`<${NotSent} />`;
  if (!page.value.website && name !== "admin") return html`<${NoWebsite} />`;
  if (first.error != null) return html`<${Failure} error=${first.error} onRetry=${first.reload} />`;
  if (isWaiting) return html`<section class="card"><${Skeleton} /></section>`;
  return Content ? html`<${Guard} view=${Content} />` : null;
}

function NoWebsite() {
  const mayCreate = session.value?.scopes.includes("manage:config");
  const how = mayCreate ? html`in <a href=${viewUrl("admin", "websites")}>Administration</a>` : html`with <code>headrace website create</code>`;
  return html`<section class="card"><${Empty} title="No website yet">Create one ${how}, or sign in with another key.<//></section>`;
}

whenSignedOut(() => {
  refused.value = page.value.website;
  hasEnded.value = Boolean(session.value) || hasEnded.value;
  if (session.value) keepDrafts(rightsOf(session.value));
  session.value = null;
});
session.subscribe((signedIn) => {
  if (signedIn) {
    hasEnded.value = false;
    handOverDrafts(rightsOf(signedIn));
  }
  firstTimes.value = {};
  forget(); // the next user may not see what the last one has seen
  forgetBreakdowns();
});
/** Another session may have taken the place of the one that is shown. */
async function reviewSession() {
  const found = await fetchSession().catch(() => undefined);
  if (found === undefined || isOfLink.value || JSON.stringify(found) === JSON.stringify(session.value)) return;
  if (found && found.expires === session.value?.expires) {
    session.value = found; // the same one with other websites: nothing that is shown is another's
    return;
  }
  turn.value += 1;
  session.value = null; // what was kept for the one is not for the other
  session.value = found;
}
whenChangedElsewhere(reviewSession);
// Browsers keep a page that was left as it was, and hear nothing for it.
addEventListener("pageshow", ({ persisted }) => persisted && reviewSession());
// A link that is opened where the page is open already changes the hash alone.
addEventListener("hashchange", () => hasCode() && location.reload());
/** A page that comes into sight again after this time shows what is there now. */
const FRESH_MS = 300_000;
addEventListener("visibilitychange", () => {
  if (document.hidden || Date.now() - now.value < FRESH_MS) return;
  now.value = Date.now();
  forgetBreakdowns();
  refresh();
});
listen();
keepFocus();
keepScroll();
render(html`<${Page} />`, /** @type {HTMLElement} */ (document.getElementById("page")));
