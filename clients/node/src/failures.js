/** What the client throws. */

/** The root of all of them. */
export class HeadraceError extends Error {
  /**
   * @param {string} message
   * @param {ErrorOptions} [options]
   */
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The outbox has no room: the item was not taken. Items leave it as soon as Headrace can be reached. */
export class OutboxFull extends HeadraceError {
  /** @param {number} maxBytes */
  constructor(maxBytes) {
    super(`the outbox is full: it holds at most ${maxBytes} bytes`);
  }
}

/** The files of the outbox cannot be opened or written: the item was not taken. */
export class OutboxUnavailable extends HeadraceError {
  /**
   * @param {string} directory
   * @param {unknown} cause
   */
  constructor(directory, cause) {
    const reason = /** @type {NodeJS.ErrnoException} */ (cause).code ?? String(cause);
    super(`cannot write the outbox ${directory}: ${reason}`, { cause });
  }
}

/** A query was refused or failed. */
export class QueryFailed extends HeadraceError {
  /**
   * @param {string} message
   * @param {{status: number, code: string, retryAfterMs: number}} reply
   */
  constructor(message, { status, code, retryAfterMs }) {
    super(message);
    /** The HTTP status, 0 where nothing answered. */
    this.status = status;
    /** The code of the error, such as `INVALID_COLUMN`; "" where the service gave none. */
    this.code = code;
    /** After how many milliseconds the same query may succeed; 0 where the service does not say. */
    this.retryAfterMs = retryAfterMs;
  }
}
