// The core of the tracker: puts the parts together, and `window.headrace` before them.

import { base, matches, options } from "./config";
import { add, flush, retryNow, urlOf, type Item } from "./outbox";
import { address, watchPages } from "./pages";
import { forget, ids, isOptedOut, optIn, optOut, profileId, setProfileId } from "./visitor";

/** The address of the second file beside this one, and its integrity value; the build knows them. */
declare const EXTRAS_FILE: string;
declare const EXTRAS_INTEGRITY: string;

let globals: Item = {};
let traits: Item = {};

const names = window as unknown as Record<string, typeof api>;
const isOff =
  names["headrace"]?.put || // a component loads the script again when it is mounted again
  !options.clientId ||
  (options.privacySignals !== "false" &&
    ((navigator as { globalPrivacyControl?: boolean }).globalPrivacyControl ||
      (navigator.doNotTrack as unknown as number) > 0)) ||
  options.disabled === "true" ||
  Math.random() >= ((options.samplingRate as unknown as number) || 1);

/** Write an item, or give it to `write`, unless the visitor or the site is against it. */
const put = (endpoint: string, item: Item, write = add): void => {
  if (!isOff && !isOptedOut() && !matches("skipPatterns")) write(endpoint, { ...ids(), ...item });
};

/** Write an event; `fields` stand beside its properties. */
const send = (name: string, properties?: Item, fields?: Item): void =>
  put("batch", { name, path: address(), ...fields, properties: { ...globals, ...properties } });

const [view, changed] = watchPages(send);

const identify = (id: string, newTraits?: Item): void => {
  setProfileId(id);
  traits = { ...traits, ...newTraits };
  send("identify", { traits }, { profileId: id });
};

const early: Event[] = [];
let handle = (event: Event): unknown => early.push(event);

const api = {
  options,
  put,
  urlOf,
  track: send,
  screenView: view,
  identify,
  setTraits: (newTraits: Item) => identify(profileId(), newTraits),
  getProfileId: profileId,
  clearProfile: () => setProfileId(""),
  setGlobalProperties: (properties: Item) => void (globals = { ...globals, ...properties }),
  clear: () => {
    globals = traits = {};
    forget();
  },
  flush,
  optOut,
  optIn,
  changed,
  /** Hand errors and clicks to the second file, the earlier ones first. */
  observe: (handler: (event: Event) => unknown) => early.forEach((handle = handler)),
};
export type Core = typeof api;

const start = (): void => {
  if (options.trackPageViews !== "false") view();
  addEventListener("online", retryNow);
  retryNow(); // what earlier pages could not send
  for (const name of ["error", "unhandledrejection", "click"]) {
    addEventListener(name, (event) => handle(event), true);
  }
  (window.requestIdleCallback || setTimeout)(() => {
    document.head.append(
      Object.assign(document.createElement("script"), {
        src: new URL(EXTRAS_FILE, base),
        integrity: EXTRAS_INTEGRITY,
        crossOrigin: "", // cross-origin scripts have an integrity value with CORS alone
      }),
    );
  });
};

if (!isOff) {
  if ((document as { prerendering?: boolean }).prerendering) {
    document.addEventListener("prerenderingchange", start);
  } else start();
}
if (!names["headrace"]?.put) names["headrace"] = names["db"] = names["databuddy"] = api;
