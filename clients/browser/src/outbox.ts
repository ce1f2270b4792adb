// Items are written here first and sent later, as often as needed; their ids make repeats harmless.
//
// Each item has a key of its own, so that tabs never overwrite each other's items. A key sorts by
// the time at which it was written, and names the endpoint of its item.

import { options, server, website } from "./config";

export type Item = Record<string, unknown>;

const PREFIX = "headrace:";
const MAX_ITEMS = 500;
const MAX_CHARACTERS = 250_000;
const MAX_AGE_MS = 6 * 86_400_000; // ids are remembered for seven days
const MAX_BODY = 55_000; // browsers allow 64 KiB for all requests that outlive their page
const MAX_BATCH = 50;
const FINAL = /40[034]|41[35]/; // sent again they would be refused again

/** Where items are kept: the storage, or an object of this page where there is none. */
let storage: Record<string, string> = {};
try {
  if (options.storage !== "none") storage = localStorage;
} catch {
  // refused by the browser or its user
}
/** Where the items are now: in memory from when the storage is full until all of them are sent. */
let store = storage;

let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let isSending = false;
/** The number of items that were refused for good or did not fit, until an event reports it. */
let dropped = 0;
let sequence = 1e6;

/** The keys of the items, newest first. */
const keys = (): string[] =>
  Object.keys(store)
    .filter((key) => key.startsWith(PREFIX))
    .sort()
    .reverse();

const remove = (key: string): void => void delete store[key];

/** A random text of 128 bits; `randomUUID` is missing on pages without TLS. */
export const uuid = (): string => crypto.getRandomValues(new Uint32Array(4)).join("");

/** Remove all unsent items. */
export const clear = (): void => keys().forEach(remove);

/** Write an item, to be sent soon. */
export const add = (endpoint: string, item: Item): void => {
  if (dropped && endpoint === "batch") {
    item.properties = { ...(item.properties as Item), _dropped: dropped };
    dropped = 0;
  }
  const eventId = uuid();
  const key = PREFIX + Date.now() + sequence++ + eventId + ":" + endpoint;
  const text = JSON.stringify({ eventId, ...item });
  if (text.length > MAX_BODY) dropped++;
  else {
    try {
      store[key] = text;
    } catch {
      store = { [key]: text }; // full; what it holds is sent later
    }
    if (!failures) schedule(500); // a pause after a failure is not shortened
  }
};

const schedule = (delayMs: number): void => {
  clearTimeout(timer);
  timer = setTimeout(flush, delayMs);
};

const endpointOf = (key: string): string => key.split(":")[2]!;

/** Return the oldest items of one endpoint; drop what is beyond the limits of the outbox. */
const nextBatch = (limit = MAX_BATCH): string[] => {
  let total = 0;
  let size = 0;
  let endpoint = "";
  return keys()
    .filter(
      (key, index) =>
        (index < MAX_ITEMS &&
          (total += store[key]!.length) < MAX_CHARACTERS &&
          key > PREFIX + (Date.now() - MAX_AGE_MS)) ||
        (remove(key), dropped++, false),
    )
    .reverse()
    .filter((key) => endpointOf(key) === (endpoint ||= endpointOf(key)))
    .filter(
      (key, index) =>
        ((size += store[key]!.length) < MAX_BODY / 2 && index < limit) || !index,
    );
};

/** Send a batch. A text has the type text/plain: no preflight. `keepalive` outlives the page. */
const post = (batch: string[]): Promise<Response> =>
  fetch(`${server}/${endpointOf(batch[0]!)}?client_id=${website}`, {
    method: "POST",
    body: `[${batch.map((key) => store[key])}]`,
    keepalive: true,
  });

/** Send again after the pause that was asked for, or after one that grows with each failure. */
const retry = (pauseMs = 0): void =>
  schedule(pauseMs || Math.min(6e4, 1e3 * 2 ** failures++) * (0.5 + Math.random()));

/** Send until nothing is left or something fails. */
const sendAll = async (): Promise<void> => {
  let limit = MAX_BATCH;
  for (let batch; (batch = nextBatch(limit))[0]; ) {
    const { status, headers } = await post(batch);
    const isFinal = FINAL.test(status as unknown as string);
    if (status === 413 && batch[1]) limit = batch.length >> 1;
    else if (isFinal || status < 300) {
      if (isFinal) dropped += batch.length;
      batch.forEach(remove);
      failures = 0;
    } else return retry(1e3 * +headers.get("Retry-After")!);
  }
  store = storage;
};

/** Send what is unsent; one tab of a website sends at a time. Never rejects. */
export const flush = async (): Promise<void> => {
  if (isSending) return schedule(500); // what is sending may have read everything already
  isSending = true;
  try {
    await (navigator.locks
      ? navigator.locks.request(PREFIX, { ifAvailable: true }, async (lock) =>
          lock ? sendAll() : schedule(2000), // another tab sends these items, too
        )
      : sendAll());
  } catch {
    retry(); // nothing answered
  }
  isSending = false;
};

/** Send at once, whatever pause was due. */
export const retryNow = (): void => {
  failures = 0;
  schedule(0);
};

/** Hand what is unsent to the browser, which sends it without this page; nothing is removed. */
export const sendOnLeaving = (): void => {
  const batch = nextBatch();
  if (batch[0]) post(batch).catch(() => {});
};
