/** Loading what a view shows: the last answer stays until the next one is there. */

import { useCallback, useEffect, useRef, useState } from "../vendor/hooks.js";
import { beginLoading, endLoading } from "./announce.js";

/** Answers of the last minute, so that going back asks nothing again. @type {Map<string, {value: unknown, time: number}>} */
const kept = new Map();
/** Loads again what has failed and is still shown. @type {Set<() => void>} */
const failed = new Set();
/** Loads again what is shown. @type {Set<() => void>} */
const shown = new Set();
const KEPT_MS = 60_000;
const MAX_KEPT = 50;

/**
 * @template T
 * @typedef {{value: T | undefined, error: unknown, isLoading: boolean, reload: () => void}} Loaded
 */

/**
 * Load once for each `key`. An answer that came too late is dropped; "" loads nothing. `reload` also
 * loads again whatever else has failed: a service that was away was away for all of it.
 * @template T
 * @param {string} key
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @returns {Loaded<T>}
 */
export function useLoad(key, load) {
  const [turn, setTurn] = useState(0);
  const loadedTurn = useRef(turn);
  const [state, setState] = useState(/** @type {{key: string, value: T | undefined, error: unknown}} */ ({ key: "", value: undefined, error: null }));
  useEffect(() => {
    const isAgain = turn !== loadedTurn.current;
    loadedTurn.current = turn;
    if (!key) return undefined;
    const before = kept.get(key);
    if (!isAgain && before && Date.now() - before.time < KEPT_MS) {
      setState({ key, value: /** @type {T} */ (before.value), error: null });
      return undefined;
    }
    const controller = new AbortController();
    let isPending = true;
    const end = (/** @type {"loaded" | "refused" | "dropped"} */ how) => {
      if (isPending) endLoading(how);
      isPending = false;
    };
    beginLoading(state.key === key && state.error != null);
    setState((last) => ({ ...last, error: null }));
    load(controller.signal).then(
      (value) => {
        if (controller.signal.aborted) return;
        keep(key, value);
        setState({ key, value, error: null });
        end("loaded");
      },
      (error) => {
        if (controller.signal.aborted) return;
        setState((last) => ({ key, value: last.key === key ? last.value : undefined, error }));
        end("refused");
      },
    );
    return () => {
      controller.abort();
      end("dropped");
    };
  }, [key, turn]);
  const again = useCallback(() => {
    kept.delete(key);
    setTurn((last) => last + 1);
  }, [key]);
  useEffect(() => {
    if (!key) return undefined;
    shown.add(again);
    return () => {
      shown.delete(again);
    };
  }, [key, again]);
  const error = state.key === key ? state.error : null;
  useEffect(() => {
    if (error == null) return undefined;
    failed.add(again);
    return () => {
      failed.delete(again);
    };
  }, [error, again]);
  const reload = useCallback(() => new Set([again, ...failed]).forEach((one) => one()), [again]);
  return { value: state.value, error, isLoading: Boolean(key) && state.key !== key, reload };
}

/** Load again all that is shown; it stays until the next answers are there. */
export function refresh() {
  for (const again of shown) again();
}

/** Forget all answers. */
export function forget() {
  kept.clear();
}

/** @param {string} key @param {unknown} value */
function keep(key, value) {
  kept.delete(key);
  kept.set(key, { value, time: Date.now() });
  if (kept.size > MAX_KEPT) kept.delete(String(kept.keys().next().value));
}
