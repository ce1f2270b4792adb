// Who an item is from: the session, and only where the site or its user chose so, stored ids.

import { options } from "./config";
import { clear, uuid, type Item } from "./outbox";

const SESSION = "did_session"; // other programs read the id there
const LAST_USE = "did_session_at";
const OPT_OUT = "headrace_optout";
const SESSION_IDLE_MS = 1_800_000;

/** What this page wrote, because a storage may be full or refused. */
const written: Record<string, string> = {};

/** Read or write a text; an empty one stands for none. The session is that of the tab. */
const stored = (key: string, text?: string | number): string => {
  let found = (written[key] = (text ?? written[key]) as string);
  try {
    // sessionStorage for the two keys of the session
    const storage = (/_s/.test(key) ? sessionStorage : localStorage) as Record<string, string>;
    if (text === null) found = storage[key] ?? found;
    else storage[key] = text as string;
  } catch {
    // full or refused
  }
  return found || "";
};

export let profile = stored("did_profile");
let anonymousId = "";
/** Keep the anonymous id that is known, or a new one, where the site chose so. */
const identifyDevice = (known?: string): void => {
  if (options.visitor === "persistent") anonymousId = known || stored("did", "anon_" + uuid());
};
identifyDevice(stored("did"));

export const isOptedOut = (): boolean => !!stored(OPT_OUT);

export const optOut = (): void => {
  clear(); // which makes room for what follows
  stored(OPT_OUT, "1");
};

export const optIn = (): unknown => stored(OPT_OUT, "");

export const profileId = (): string => profile;

/** Set or forget the profile of the visitor; it is kept where the anonymous id is. */
export const setProfileId = (id?: unknown): void => {
  profile = ((id || "") as string) + ""; // it may be a number
  if (anonymousId || !id) stored("did_profile", profile);
};

/** Begin a new session, with a new anonymous id where one is stored. */
export const forget = (): void => {
  setProfileId();
  identifyDevice();
  stored(SESSION, "");
};

/** The ids of an item, the empty ones for none; half an hour without items ends a session.
 *
 * A profile id that the service refuses is none: cut, those of two people could be the same.
 */
export const ids = (): Item => {
  const timestamp = Date.now();
  const idleMs = timestamp - (stored(LAST_USE) as unknown as number);
  const sessionId = (idleMs < SESSION_IDLE_MS && stored(SESSION)) || stored(SESSION, uuid());
  stored(LAST_USE, timestamp);
  return { sessionId, timestamp, anonymousId, profileId: profile[128] ? "" : profile };
};
