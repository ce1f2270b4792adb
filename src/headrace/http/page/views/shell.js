/** What surrounds every view: navigation, website, colours, keyboard. */

import { chooseTheme, follow, navigate, page, session, theme, viewUrl, website } from "../app_state.js";
import { signOut } from "../api/session.js";
import { dropDrafts } from "../controls/draft.js";
import { explain } from "../controls/messages.js";
import { OptionList } from "../controls/option_list.js";
import { Popover } from "../controls/popover.js";
import { Shortcuts } from "../controls/shortcuts.js";
import { html } from "../html.js";
import { ofWebsite } from "../state/page_state.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";

/** @typedef {{view: string, name: string, key: string, icon: string}} Entry  `icon` is the path of a line drawing, 16 by 16 */

/** @type {Entry[]} */
const ENTRIES = [
  { view: "overview", name: "Overview", key: "o", icon: "M2 13.5h12M3.5 11V7M7 11V3.5M10.5 11V8.5M13.5 11V5.5" },
  { view: "explore", name: "Explore", key: "e", icon: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5l3.5 3.5" },
  { view: "vitals", name: "Web vitals", key: "v", icon: "M2.5 11a5.5 5.5 0 0 1 11 0M8 11l2.5-3" },
  { view: "errors", name: "Errors", key: "r", icon: "M8 2.5 14 13H2L8 2.5Zm0 4v3m0 1.6v.2" },
  { view: "funnels", name: "Funnels", key: "f", icon: "M2.5 3h11L9.5 8.5v4l-3 1v-5L2.5 3Z" },
  { view: "retention", name: "Retention", key: "t", icon: "M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3" },
  { view: "live", name: "Live", key: "l", icon: "M8 8.5v-1M5 10.5a4 4 0 0 1 0-5M11 5.5a4 4 0 0 1 0 5M3 12.5a7 7 0 0 1 0-9M13 3.5a7 7 0 0 1 0 9" },
  { view: "setup", name: "Setup", key: "s", icon: "M5.5 5 2.5 8l3 3M10.5 5l3 3-3 3" },
  { view: "admin", name: "Administration", key: "a", icon: "M2.5 4.5h7M12.5 4.5h1M2.5 11.5h1M6.5 11.5h7M11 6a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3ZM5 13a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3Z" },
];
const THEMES = { auto: "Colours of the system", light: "Light", dark: "Dark" };

/** @param {{children: any, title: string}} props */
export function Shell({ children, title }) {
  useEffect(() => {
    // On a phone the list of pages is wider than the window.
    document.querySelector(".side [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
  }, [page.value.view]);
  const isFirst = useRef(true);
  useEffect(() => {
    // The link that was followed may be gone with the view that it was in.
    if (!isFirst.current && document.activeElement === document.body) document.getElementById("content")?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [page.value.view, page.value.item]);
  return html`<div class="shell">
    <a class="skip" href="#content">Skip to the content</a>
    <nav class="side" aria-label="Pages">
      <a class="brand" href=${viewUrl("overview")}><img src=${new URL("../icon.svg", import.meta.url).href} alt="" width="22" height="22" /><span>Headrace</span></a>
      <${WebsitePicker} />
      <ul>${ENTRIES.map(({ view, name, key, icon }) => html`<li key=${view}><a href=${viewUrl(view)} aria-current=${page.value.view === view ? "page" : undefined} title=${`${name} (g ${key})`}>
        <svg viewBox="0 0 16 16" aria-hidden="true"><path d=${icon} /></svg>${name}</a></li>`)}</ul>
      <div class="foot">
        <${Popover} title="Colours" className="quiet" label=${html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Zm0 0v11" /></svg><span>Colours</span>`}>
          ${(/** @type {() => void} */ close) => html`<${OptionList} label="Colours" value=${theme.value}
            options=${Object.entries(THEMES).map(([value, label]) => ({ value, label }))} onChoose=${(/** @type {string} */ chosen) => (chooseTheme(chosen), close())} />`}
        <//>
        <${Shortcuts} entries=${ENTRIES} />
        <a class="quiet" href="/docs" target="_blank" rel="noreferrer"><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M3 2.5h7l3 3v8H3zM6 8h4M6 10.5h4" /></svg><span>API</span></a>
        ${session.value ? html`<${SignOut} />` : html`<a class="quiet" href="/app/"><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M6.5 3H13v10H6.5M2 8h7.5M7 5.5 9.5 8 7 10.5" /></svg><span>Sign in</span></a>`}
      </div>
    </nav>
    <main id="content" tabindex="-1"><h1 data-website=${website.value?.name ?? "Headrace"}>${title}</h1>${children}</main>
  </div>`;
}

/** Ends the session. Until the service has ended it, nobody may take it for ended. */
function SignOut() {
  const [failure, setFailure] = useState("");
  const leave = async () => {
    setFailure("");
    try {
      await signOut();
      dropDrafts();
      follow("/app/");
      session.value = null;
    } catch (error) {
      setFailure(`Not signed out: ${explain(error).title}`);
    }
  };
  return html`<button type="button" class="quiet" title=${failure || "Sign out"} onClick=${leave}><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M9.5 3H3v10h6.5M6.5 8H14m-2.5-2.5L14 8l-2.5 2.5" /></svg><span>Sign out</span></button>
    ${failure && html`<p class="refusal" role="alert">${failure}</p>`}`;
}

function WebsitePicker() {
  const websites = session.value?.websites ?? [];
  const options = websites.map(({ id, name, domain }) => ({ value: id, label: name, hint: domain, isFoundByHint: true }));
  const name = website.value?.name ?? (page.value.website || "Choose a website");
  return html`<${Popover} title="Website" className="site" label=${html`<bdi>${name}</bdi>`}>
    ${(/** @type {() => void} */ close) => html`<${OptionList} label="websites" isSearchable=${websites.length > 6} takesOther="last" value=${page.value.website} options=${options}
      onChoose=${(/** @type {string} */ id) => (navigate(ofWebsite(page.value, id)), close())} />`}
  <//>`;
}
