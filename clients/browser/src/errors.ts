// Errors that the page does not handle.

import type { Item } from "./outbox";

const MAX_REPEATS = 5;
const MAX_STACK = 16_384; // a body must stay under what browsers send after the page is gone
const CUT = "\n(cut)";
const NOISE = /^(ResizeObserver loop|Script error\.?$)|extension:\/\/|^$/;

/** Return the handler of errors and unhandled rejections.
 *
 * What is not reported, because it is noise or was reported often enough, is counted by its message
 * whenever the page is hidden.
 */
export const watchErrors = (
  report: (item: Item) => void,
  track: (name: string, properties: Item) => void,
): ((event: ErrorEvent | PromiseRejectionEvent) => void) => {
  const seen: Record<string, number> = {};
  // before the handler of the core, which sends everything
  addEventListener(
    "visibilitychange",
    () => {
      for (const message in seen) {
        const count = seen[message]! - MAX_REPEATS;
        if (count > 0) track("error_count", { message, count });
        seen[message] = Math.min(seen[message]!, MAX_REPEATS);
      }
    },
    true,
  );
  return (event) => {
    const error = ((event as ErrorEvent).error ?? (event as PromiseRejectionEvent).reason) as Partial<Error> | undefined;
    const message = String((event as ErrorEvent).message ?? error?.message ?? error).slice(0, 4096);
    const { stack = "", name } = error || {};
    seen[message] ||= NOISE.test(message + stack) ? MAX_REPEATS : 0;
    if (++seen[message] > MAX_REPEATS) return;
    report({
      message,
      stack: stack[MAX_STACK] ? stack.slice(0, MAX_STACK) + CUT : stack,
      errorType: name?.slice(0, 128),
      filename: (event as ErrorEvent).filename?.slice(0, 2048),
      lineno: (event as ErrorEvent).lineno,
      colno: (event as ErrorEvent).colno,
    });
  };
};
