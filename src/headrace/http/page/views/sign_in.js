/** Signing in with a key, or with the code of a link that `headrace sign-in` prints. */

import { session } from "../app_state.js";
import { ApiError } from "../api/client.js";
import { signIn } from "../api/session.js";
import { explain } from "../controls/messages.js";
import { html } from "../html.js";
import { useEffect, useState } from "../vendor/hooks.js";

/** @param {{hasEnded: boolean, onDone: () => void}} props  `hasEnded`: a session did, before anybody wanted it to */
export function SignIn({ hasEnded, onDone }) {
  const [key, setKey] = useState("");
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [isOfLink, setOfLink] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const send = async (/** @type {{key: string} | {code: string}} */ credentials) => {
    setBusy(true);
    setError(null);
    setOfLink("code" in credentials);
    try {
      session.value = await signIn(credentials);
      onDone();
    } catch (refusal) {
      setError(refusal);
    }
    setBusy(false);
  };
  useEffect(() => {
    document.title = "Sign in · Headrace"; // that of the session had a website
    const code = codeOfLink();
    if (code) send({ code });
  }, []);
  const onSubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (key.trim()) send({ key: key.trim() });
  };
  return html`<main class="lone sign-in">
    <h1><img src=${new URL("../icon.svg", import.meta.url).href} alt="" width="28" height="28" /> Headrace</h1>
    <form class="card" onSubmit=${onSubmit}>
      <label>API key
        <input type="password" autocomplete="current-password" placeholder="hr_…" value=${key} required
          aria-invalid=${error != null && !isOfLink} onInput=${(/** @type {any} */ event) => setKey(event.target.value)} /></label>
      ${hasEnded && error == null && html`<p role="status">This session has ended. Sign in again to go on where it was.</p>`}
      ${error != null && html`<p class="refusal" role="alert"><strong>${refusalOf(error, isOfLink)}</strong></p>`}
      <button type="submit" class="primary" disabled=${isBusy}>${isBusy ? "Signing in" : "Sign in"}</button>
      <p class="faint">The key needs the scope <code>read:data</code>. This browser keeps a session of 12 hours, never the key.</p>
    </form>
    ${session.value && error != null && html`<p><button type="button" onClick=${onDone}>Go on with the session of before</button></p>`}
    <p class="faint">No key at hand? On the machine of the service, <code>headrace sign-in</code> prints a link that signs in.</p>
  </main>`;
}

/** @param {unknown} error @param {boolean} isOfLink */
function refusalOf(error, isOfLink) {
  if (error instanceof ApiError && error.status === 429) return `Too many attempts have failed. Try again in ${error.retryAfterS || 60} s.`;
  const { title } = explain(error);
  if (title !== "Invalid sign-in") return title;
  return isOfLink ? "This link was used already, or is older than 15 minutes." : "This key is not valid, or not any more.";
}

/** Take the code out of the URL, so that it stays in no history. */
function codeOfLink() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}
