/** The stream of a website's items. The browser opens it again by itself, after the last event that it has. */

import { urlOf } from "./client.js";

/** @typedef {"open" | "waiting" | "refused"} StreamState */
/** @typedef {{kind: string, body: any}} LiveItem  `kind` is `event`, `refused` or `missed` */

const KINDS = ["event", "refused", "missed"];

/**
 * Open the stream and return what closes it. It is also closed while its page is left: browsers keep
 * such pages with their connections, of which a service gets six.
 * @param {string} website
 * @param {(item: LiveItem) => void} onItem
 * @param {(state: StreamState) => void} onState
 */
export function openLive(website, onItem, onState) {
  /** @type {EventSource} */
  let source;
  const open = () => {
    source = new EventSource(urlOf("/v1/live", { website_id: website }));
    source.addEventListener("open", () => onState("open"));
    source.addEventListener("error", () => onState(source.readyState === EventSource.CLOSED ? "refused" : "waiting"));
    for (const kind of KINDS) source.addEventListener(kind, (event) => onItem({ kind, body: JSON.parse(event.data) }));
  };
  const onLeave = () => source.close();
  const onReturn = (/** @type {PageTransitionEvent} */ event) => event.persisted && open();
  open();
  addEventListener("pagehide", onLeave);
  addEventListener("pageshow", onReturn);
  return () => {
    removeEventListener("pagehide", onLeave);
    removeEventListener("pageshow", onReturn);
    source.close();
  };
}
