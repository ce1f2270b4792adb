/** Uncaught errors of this process. */

/** @typedef {import("./client.js").Headrace} Headrace */

/**
 * Record what ends this process: uncaught exceptions, and unhandled rejections, which Node.js makes
 * uncaught exceptions of unless the program handles them. The process ends as it would without: the
 * error is in the outbox by then, and the next process sends it. Returns a function that stops it.
 * @param {Headrace} client
 * @param {Partial<import("./items.js").ErrorReport>} [fields]
 */
export function captureExceptions(client, fields = {}) {
  const listener = (/** @type {unknown} */ error) => {
    try {
      client.errors(error, { level: "fatal", ...fields });
    } catch {
      // what ended the process is shown as ever; that the outbox is full is not worth hiding it
    }
  };
  process.on("uncaughtExceptionMonitor", listener);
  return () => void process.off("uncaughtExceptionMonitor", listener);
}
