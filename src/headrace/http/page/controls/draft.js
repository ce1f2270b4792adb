/**
 * What was entered and not sent yet. It outlives its form where a session ends, so that the next one
 * goes on with it: in memory alone, as it may be about somebody.
 */

import { useContext, useEffect, useRef, useState } from "../vendor/hooks.js";
import { createContext } from "../vendor/preact.js";

/** @type {Map<string, unknown>} */
const kept = new Map();
/** What the session of the drafts may, while they wait for the next one. @type {string[] | null} */
let rights = null;

/** The name of the panel that a form is in, "" where what it has is not kept. */
export const PanelName = createContext("");

/**
 * State of a form in a panel, by a name that no other one in there has.
 * @template T
 * @param {string} name
 * @param {() => T} first
 * @returns {[T, (value: T) => void]}
 */
export function usePanelDraft(name, first) {
  const panel = useContext(PanelName);
  return useDraft(panel && `${panel}: ${name}`, first);
}

/**
 * State of a form by a name that no other form has; "" keeps nothing.
 * @template T
 * @param {string} name
 * @param {() => T} first
 * @returns {[T, (value: T) => void]}
 */
export function useDraft(name, first) {
  const [value, setValue] = useState(() => /** @type {T} */ (kept.has(name) ? kept.get(name) : first()));
  const last = useRef(value);
  last.current = value;
  useEffect(() => {
    kept.delete(name);
    return () => {
      if (rights && name) kept.set(name, last.current);
    };
  }, []);
  return [value, setValue];
}

/** A session has ended by itself: what its forms have is kept. @param {string[]} had its rights */
export function keepDrafts(had) {
  rights = had;
}

/** A session has begun: drafts are for one that may all that theirs could. @param {string[]} has its rights */
export function handOverDrafts(has) {
  if (rights?.some((right) => !has.includes(right))) kept.clear();
  rights = null;
}

/** Somebody has signed out. */
export function dropDrafts() {
  kept.clear();
  rights = null;
}
