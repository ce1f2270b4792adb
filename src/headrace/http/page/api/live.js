/**
 * The stream of a website's items. It is opened again after the last event that came, by itself or when
 * a list goes on. `EventSource` cannot begin after an event, does not notice a connection that is dead,
 * and takes a service that starts again for one that refuses.
 */

import { parseJson } from "../state/json.js";
import { splitEvents } from "../state/live/event_stream.js";
import { signedOut, urlOf } from "./client.js";

/** @typedef {"open" | "waiting" | "refused"} StreamState */
/** @typedef {{kind: string, body: any}} LiveItem  `kind` is `event`, `refused` or `missed`; the last one has `from` and `to` after an interruption */
/** @typedef {{lastId: string, heard: number}} Position  where a stream goes on: after an event or the beginning, "" before it was open; `heard` is when it last sent something, 0 for never */

const RETRY_MS = 2_000;
/** The service sends a comment every 15 seconds; a connection that is silent for longer is dead. */
const SILENT_MS = 40_000;

/**
 * Open the stream and return what closes it. It is also closed while its page is left: browsers keep
 * such pages with their connections, of which a service gets six.
 * @param {string} website
 * @param {(item: LiveItem) => void} onItem
 * @param {(state: StreamState) => void} onState
 * @param {Position} [position]  is kept up to date
 */
export function openLive(website, onItem, onState, position = beginning()) {
  let connection = new AbortController();
  let retry = 0;
  const open = async () => {
    const own = (connection = new AbortController());
    const isClosed = () => connection !== own;
    onState("waiting");
    const isRefused = await listen(website, position, own, onItem, () => onState("open")).catch(() => false);
    own.abort(); // also where an event could not be read
    if (isClosed()) return;
    onState(isRefused ? "refused" : "waiting");
    if (!isRefused) retry = setTimeout(open, RETRY_MS);
  };
  const close = () => {
    connection.abort();
    connection = new AbortController();
    clearTimeout(retry);
  };
  const onReturn = (/** @type {PageTransitionEvent} */ event) => event.persisted && open();
  open();
  addEventListener("pagehide", close);
  addEventListener("pageshow", onReturn);
  return () => {
    removeEventListener("pagehide", close);
    removeEventListener("pageshow", onReturn);
    close();
  };
}

/** The position of a new list. @returns {Position} */
export function beginning() {
  return { lastId: "", heard: 0 };
}

/**
 * Pass on the events until the connection ends; whether the service has refused it.
 * @param {string} website @param {Position} position @param {AbortController} connection
 * @param {(item: LiveItem) => void} onItem @param {() => void} onOpen
 */
async function listen(website, position, connection, onItem, onOpen) {
  /** @template T @param {Promise<T>} coming @returns {Promise<T>} */
  const soon = (coming) => {
    const silent = setTimeout(() => connection.abort(), SILENT_MS);
    return coming.finally(() => clearTimeout(silent));
  };
  const headers = position.lastId ? { "Last-Event-ID": position.lastId } : undefined;
  const response = await soon(fetch(urlOf("/v1/live", { website_id: website }), { headers, signal: connection.signal }));
  if (response.status === 401) signedOut();
  if (!response.ok || !response.body) return response.status < 500;
  let gap = position.heard ? { from: iso(position.heard), to: iso(Date.now()) } : null;
  position.heard = Date.now();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let isGreeted = false;
  for (let text = ""; ; ) {
    const { value, done } = await soon(reader.read());
    if (done) return false;
    position.heard = Date.now();
    const { events, rest } = splitEvents(text + value);
    text = rest;
    for (const { kind, id, data } of events) {
      if (kind === "") {
        position.lastId = id || position.lastId;
        if (isGreeted) gap = null; // what is missing is sent before the second comment
        else onOpen(); // not with the head: a list that is left before this id would lose what comes then
        isGreeted = true;
        continue;
      }
      position.lastId = id;
      onItem({ kind, body: { ...parseJson(data), ...(kind === "missed" ? gap : null) } });
      gap = null;
    }
  }
}

/** @param {number} time */
function iso(time) {
  return new Date(time).toISOString();
}
