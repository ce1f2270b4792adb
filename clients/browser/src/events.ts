// Events and other items of this page, unless the visitor or the site is against them.

import { address } from "./addresses";
import { options } from "./config";
import { add, type Item } from "./outbox";
import { forget, ids, isOptedOut, profile, setProfileId } from "./visitor";

let globals: Item = {};
let traits: Item = {};

export const isOff =
  !options.clientId ||

  (options.privacySignals !== "false" &&
    ((navigator as { globalPrivacyControl?: boolean }).globalPrivacyControl ||
      (navigator.doNotTrack as unknown as number) > 0)) ||
  options.disabled === "true" ||
  Math.random() >= ((options.samplingRate as unknown as number) || 1);

/** Write an item, or give it to `write`. */
export const put = (endpoint: string, item: Item, write = add): void => {
  if (!isOff && address() && !isOptedOut()) write(endpoint, { path: address(), ...ids(), ...item });
};

/** Return what JSON has of two objects; of the first alone where it cannot have the second. */
const joined = (known: Item, more?: Item): Item => {
  try {
    return JSON.parse(JSON.stringify({ ...known, ...more })) as Item;
  } catch {
    return known; // a circle, a BigInt, a getter that throws
  }
};

/** Write an event; `fields` stand beside its properties. */
export const send = (name: string, properties?: Item, fields?: Item): void =>
  put("batch", { name, ...fields, properties: joined(globals, properties) });

export const identify = (id: string, newTraits?: Item): void => {
  setProfileId(id);
  traits = joined(traits, newTraits);
  send("identify", { traits });
};

export const setTraits = (newTraits: Item): void => identify(profile, newTraits);

export const setGlobalProperties = (properties: Item): void => {
  globals = joined(globals, properties);
};

export const clear = (): void => {
  globals = traits = {};
  forget();
};
