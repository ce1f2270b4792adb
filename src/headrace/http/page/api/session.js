/** Who is signed in: a cookie that scripts cannot read, so the service is asked. */

import { ApiError, call } from "./client.js";

/** @typedef {{id: string, name: string, domain: string}} Website */
/** @typedef {{scopes: string[], websites: Website[], expires: string}} Session */

/** Tells the other tabs of this browser, which share the cookie. */
const tabs = new BroadcastChannel("headrace_session");

/** Run `callback` when another tab has signed in or out. @param {() => void} callback */
export function whenChangedElsewhere(callback) {
  tabs.onmessage = callback;
}

/** @returns {Promise<Session | null>} null where nobody is signed in */
export async function fetchSession() {
  try {
    return sessionOf((await call("GET", "/v1/session")).data);
  } catch (error) {
    // A service without sign-in has public websites alone.
    if (error instanceof ApiError && (error.status === 401 || error.status === 404)) return null;
    throw error;
  }
}

/** @param {{key: string} | {code: string}} credentials @returns {Promise<Session>} */
export async function signIn(credentials) {
  const session = sessionOf((await call("POST", "/v1/session", { body: credentials })).data);
  tabs.postMessage("");
  return session;
}

export async function signOut() {
  await call("DELETE", "/v1/session");
  tabs.postMessage("");
}

/**
 * The session after a website was created, changed or deleted: the service lists it a second later.
 * @param {Session} session @param {import("./client.js").Row} site @param {boolean} isReached whether the session may read the website now @returns {Session}
 */
export function afterChange(session, site, isReached) {
  const isListed = session.websites.some(({ id }) => id === site["id"]);
  const websites = session.websites.filter(({ id }) => isReached || id !== site["id"]).map((one) => (one.id === site["id"] ? websiteOf(site) : one));
  return { ...session, websites: isReached && !isListed ? [...websites, websiteOf(site)] : websites };
}

/** What a session may, as words. @param {Session} session */
export function rightsOf({ scopes, websites }) {
  return [...scopes, ...websites.map(({ id }) => id)];
}

/** @param {any} site @returns {Website} */
function websiteOf(site) {
  const { id, name = "", domain = "" } = typeof site === "string" ? { id: site } : site;
  return { id, name: name || domain || id, domain: domain ?? "" };
}

/** @param {any} data @returns {Session} */
function sessionOf(data) {
  const websites = (data.websites ?? []).map(websiteOf);
  return { scopes: data.scopes ?? [], expires: data.expires ?? "", websites };
}
