// The core of the tracker: puts the parts together, and `window.headrace` before them.

// In this order the parts are smallest with gzip.
import { optIn, optOut, profileId, setProfileId } from "./visitor";
import { changed, view, watchPages } from "./pages";
import { flush, retryNow } from "./outbox";
import { clear, identify, isOff, put, send, setGlobalProperties, setTraits } from "./events";
import { base, options, server } from "./config";
import { clean } from "./addresses";

/** The address of the second file beside this one, and its integrity value; the build knows them. */
declare const EXTRAS_FILE: string;
declare const EXTRAS_INTEGRITY: string;
declare const self: Window & typeof globalThis & Record<"headrace" | "databuddy" | "db", Core>;

const early: Event[] = [];
let handle = (event: Event): unknown => early.push(event);

const api = {
  options,
  put,
  server,
  clean,
  track: send,
  screenView: view,
  identify,
  setTraits,
  getProfileId: profileId,
  clearProfile: () => setProfileId(),
  setGlobalProperties,
  clear,
  optOut,
  optIn,
  changed,
  flush,
  /** Hand errors and clicks to the second file, the earlier ones first. */
  handle: (handler: (event: Event) => unknown) => early.forEach((handle = handler)),
};
export type Core = typeof api;

const start = (): void => {
  if (options.trackPageViews !== "false") view();
  watchPages();
  addEventListener("online", retryNow);
  retryNow(); // what earlier pages could not send
  ["error", "unhandledrejection", "click"].forEach((name) =>
    addEventListener(name, (event) => handle(event), true),
  );
  (self.requestIdleCallback || setTimeout)(() =>
    document.head.append(
      Object.assign(document.createElement("script"), {
        src: new URL(EXTRAS_FILE, base),
        integrity: EXTRAS_INTEGRITY,
        crossOrigin: "", // cross-origin scripts have an integrity value with CORS alone
      }),
    ),
  );
};

if (!isOff) {
  if ((document as { prerendering?: boolean }).prerendering) {
    document.addEventListener("prerenderingchange", start);
  } else start();
}
self.headrace = self.databuddy = api;
self.db ||= api; // a page may have a variable of this name
