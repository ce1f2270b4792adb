// Errors that the page does not handle.

import type { Item } from "./outbox";
import { cut } from "./texts";

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
        if (count > 0) {
          track("error_count", { message, count });
          seen[message] = MAX_REPEATS;
        }
      }
    },
    true,
  );
  return (event) => {
    const { colno, error, filename, lineno, message, reason, target } = event as ErrorEvent &
      PromiseRejectionEvent;
    if (target !== self) return; // an image, or another resource, that was not loaded
    try {
      const cause = (error ?? reason) as Partial<Error> | undefined;
      const text = cut(message ?? cause?.message ?? String(cause), 4096);
      const stack = cut(cause?.stack);
      seen[text] ||= NOISE.test(text + stack) ? MAX_REPEATS : 0;
      if (++seen[text] > MAX_REPEATS) return;
      report({
        message: text,
        stack: stack[MAX_STACK] ? cut(stack, MAX_STACK) + CUT : stack,
        errorType: cut(cause?.name, 128),
        filename: cut(filename, 2048),
        lineno,
        colno,
      });
    } catch {
      // an object that has no text
    }
  };
};
