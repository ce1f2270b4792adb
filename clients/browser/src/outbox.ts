// Items are written here first and sent later, as often as needed; their ids make repeats harmless.
//
// Each item has a key of its own, so that tabs never overwrite each other's items. A key sorts by
// the time at which it was written, and names the endpoint and the website of its item: pages of
// several websites may have one origin, and so one storage.

import { options, server, website } from "./config";

export type Item = Record<string, unknown>;

const PREFIX = "headrace:";
const MAX_ITEMS = 500;
const MAX_CHARACTERS = 250_000;
const MAX_AGE_MS = 6 * 86_400_000; // ids are remembered for seven days
const MAX_BODY = 5e4; // browsers allow 64 KiB for all requests that outlive their page
const MAX_BATCH = 50;
const MAX_REQUEST_MS = 3e4;
const MIN_LEFT_MS = 5.8e4; // of twice as much
const FINAL = /40[034]|41[35]/; // sent again they would be refused again
const MAYBE_ONE = /400|413/; // one item, or their number, may be the reason

type Store = Record<string, string>;

/** Items for which the storage has no room, or all of them where there is no storage. */
const memory: Store = {};
let storage: Store = {};
/** Lets one tab send at a time; tabs without a storage have no item in common. */
let locks: LockManager | undefined;
try {
  if (options.storage !== "none") {
    storage = localStorage || storage; // null where programs switch it off
    locks = navigator.locks;
  }
} catch {
  // refused by the browser or its user; locks are then refused, too
}

let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let sendingUntil = NaN; // while nothing is sent: every comparison with it is false
/** The number of items that were refused for good or did not fit, until an event reports it. */
let dropped = 0;
let sequence = 6e4;
/** The number of items of a request; fewer for a while after one that was refused. */
let limit = MAX_BATCH;

/** The keys of the items, newest first. */
const keys = (): string[] =>
  [storage, memory]
    .flatMap(Object.keys)
    .filter((key) => key.startsWith(PREFIX))
    .sort()
    .reverse();

const read = (key: string): string => memory[key] || storage[key]!;

const remove = (key: string): void => {
  delete storage[key];
  delete memory[key];
};

/** A random text of 128 bits; `randomUUID` is missing on pages without TLS. */
export const uuid = (): string => crypto.getRandomValues(new Uint32Array(4)).join("");

/** Remove all unsent items. */
export const clear = (): void => keys().forEach(remove);

/** Write an item, to be sent soon. */
export const add = (endpoint: string, item: Item): void => {
  if (dropped && item.properties) {
    item.properties = { ...(item.properties as Item), _dropped: dropped };
    dropped = 0;
  }
  const eventId = uuid();
  const key = PREFIX + Date.now() + sequence++ + eventId + "/" + endpoint + website;
  const text = JSON.stringify({ eventId, ...item });
  if (text[MAX_BODY]) dropped++;
  else {
    try {
      storage[key] = text;
    } catch {
      memory[key] = text;
    }
    if (!failures) schedule(500); // a pause after a failure is not shortened
  }
};

const schedule = (delayMs: number): void => {
  clearTimeout(timer);
  timer = setTimeout(flush, delayMs);
};

const targetOf = (key: string): string => key.replace(/[^/]*/, "");

/** Return the oldest items of a target, of that of the oldest item if none is named.
 *
 * What is beyond the limits of the outbox is dropped.
 */
const nextBatch = (to?: string): string[] => {
  let size = 0;
  let total = 0;
  return keys()
    .filter(
      (key, index) =>
        (index < MAX_ITEMS &&
          (total += read(key).length) < MAX_CHARACTERS &&
          key > PREFIX + (Date.now() - MAX_AGE_MS)) ||
        (remove(key), dropped++, false),
    )
    .reverse()
    .filter((key) => targetOf(key) === (to ||= targetOf(key)))
    .filter(
      (key, index) =>
        ((size += read(key).length) < MAX_BODY / 2 && index < limit) || !index,
    );
};

/** Send a batch. A text has the type text/plain: no preflight. `keepalive` outlives the page, but
 * browsers refuse it to bodies over 64 KiB, as of texts beyond ASCII: so not after a failure.
 *
 * The deadline frees the other tabs from a request that is never answered.
 */
const post = (batch: string[], keepalive = !failures): Promise<Response> =>
  fetch(server + targetOf(batch[0]!), {
    method: "POST",
    body: `[${batch.map(read)}]`,
    keepalive,
    signal: AbortSignal.timeout?.(MAX_REQUEST_MS), // missing in browsers from before 2023
  });

/** Send again after the pause that was asked for, or after one that grows with each failure. */
const retry = (pauseMs?: number): void =>
  schedule((++failures && pauseMs) || Math.min(6e4, 500 * 2 ** failures) * (0.5 + Math.random()));

/** Send until nothing is left or something fails. */
const sendAll = async (): Promise<void> => {
  for (let batch; (batch = nextBatch())[0]; ) {
    const response = await post(batch);
    const status = response.status as unknown as string;
    const isFinal = FINAL.test(status);
    if (MAYBE_ONE.test(status) && batch[1]) limit = batch.length >> 1;
    // the page of a proxy, as for signing in, is no JSON: it throws, and all is sent again
    else if (isFinal || (response.ok && (await response.json()))) {
      failures = 0;
      limit = MAX_BATCH;
      batch.forEach((key) => (remove(key), (dropped += isFinal as unknown as number)));
    } else return retry(1e3 * (response.headers.get("retry-after") as unknown as number));
  }
};

/** Send what is unsent; one tab of a website sends at a time. Never rejects. */
export const flush = async (): Promise<void> => {
  // what is sending may have read everything already; one that the browser forgot is given up
  if (Date.now() < sendingUntil) return schedule(500);
  sendingUntil = Date.now() + 2 * MAX_REQUEST_MS;
  try {
    await (locks?.request(PREFIX, { ifAvailable: true }, (lock) =>
      // Another tab sends these items, too, unless it is frozen or gone with the lock.
      lock || Math.random() > 0.8 ? sendAll() : schedule(2000),
    ) ?? sendAll());
  } catch {
    retry(); // nothing answered
  }
  sendingUntil = NaN;
};

/** Send at once, whatever pause was due. */
export const retryNow = (): void => schedule((failures = 0));

/** Hand what is unsent to the browser, which sends it without this page; nothing is removed.
 *
 * Not to a service that has let a request wait for two seconds: requests of pages that are gone have
 * no deadline, and a browser has few connections. The next page sends the items.
 */
export const sendOnLeaving = (): void =>
  new Set(keys().map(targetOf)).forEach(async (to) => {
    try {
      if (!(Date.now() > sendingUntil - MIN_LEFT_MS)) await post(nextBatch(to), true);
    } catch {
      // the next page sends it
    }
  });
