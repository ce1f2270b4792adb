// Errors that the page does not handle.

import type { Item } from "./outbox";

const MAX_REPEATS = 5;
const MAX_STACK = 16_384; // a body must stay under what browsers send after the page is gone
const NOISE = /^ResizeObserver loop|^Script error\.?$|extension:\/\//;

/** Return the handler of errors and unhandled rejections. */
export const watchErrors = (
  report: (item: Item) => void,
): ((event: ErrorEvent | PromiseRejectionEvent) => void) => {
  const seen: Record<string, number> = {};
  return (event) => {
    const isError = "message" in event;
    const error = (isError ? event.error : event.reason) as Partial<Error> | undefined;
    const message = isError ? event.message : String(error?.message ?? error);
    const { stack = "", name } = error || {};
    if (!message || NOISE.test(message) || NOISE.test(stack)) return;
    if ((seen[message] = (seen[message] || 0) + 1) > MAX_REPEATS) return;
    report({
      message: message.slice(0, 4096),
      stack: stack.slice(0, MAX_STACK),
      ...(name && { errorType: name.slice(0, 128) }),
      ...(isError && {
        filename: event.filename.slice(0, 2048),
        lineno: event.lineno,
        colno: event.colno,
      }),
    });
  };
};
