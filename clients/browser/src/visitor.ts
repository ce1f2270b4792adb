// Who an item is from: the session, and only where the site or its user chose so, stored ids.

import { options } from "./config";
import { clear, uuid, type Item } from "./outbox";

const SESSION = "did_session";
const OPT_OUT = "headrace_optout";
const SESSION_IDLE_MS = 1_800_000;

/** Read or write a text of a storage that may be refused; null removes it. */
const stored = (
  key: string,
  text?: string | null,
  where: "localStorage" | "sessionStorage" = "localStorage",
): string => {
  try {
    const storage = window[where];
    if (text) storage[key] = text;
    else if (text === null) delete storage[key];
    return (storage[key] as string | undefined) || "";
  } catch {
    return "";
  }
};

/** Id and last use of the session, where the storage is refused. */
let session = "";
let profile = stored("did_profile");
let anonymous = "";
if (options.visitor === "persistent") {
  anonymous =
    stored("did") || stored("did", `anon_${uuid()}`);
}

export const isOptedOut = (): boolean => !!stored(OPT_OUT);

export const optOut = (): void => {
  stored(OPT_OUT, "1");
  clear();
};

export const optIn = (): void => void stored(OPT_OUT, null);

export const profileId = (): string => profile;

/** Set or forget the profile of the visitor; it is kept where the anonymous id is. */
export const setProfileId = (id: string): void => {
  profile = id;
  if (anonymous || !id) stored("did_profile", id || null);
};

/** Begin a new session, with a new anonymous id where one is stored. */
export const forget = (): void => {
  setProfileId("");
  if (anonymous) anonymous = stored("did", `anon_${uuid()}`);
  stored(SESSION, null, "sessionStorage");
  session = "";
};

/** The ids of an item; half an hour without items ends a session. */
export const ids = (): Item => {
  const timestamp = Date.now();
  const [id, at] = (stored(SESSION, "", "sessionStorage") || session).split(".");
  const sessionId = timestamp - +at! < SESSION_IDLE_MS ? id : uuid();
  session = sessionId + "." + timestamp;
  stored(SESSION, session, "sessionStorage");
  return {
    timestamp,
    sessionId,
    ...(anonymous && { anonymousId: anonymous }),
    ...(profile && { profileId: profile }),
  };
};
