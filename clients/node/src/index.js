/** The Node.js client of Headrace: an item is in a file before the call returns, and is stored once. */

/** @typedef {import("./client.js").Options} Options */
/** @typedef {import("./client.js").Stats} Stats */
/** @typedef {import("./items.js").Event} Event */
/** @typedef {import("./items.js").EventFields} EventFields */
/** @typedef {import("./items.js").ErrorReport} ErrorReport */
/** @typedef {import("./items.js").Fields} Fields */
/** @typedef {import("./items.js").Vital} Vital */
/** @typedef {import("./middleware.js").RequestOptions} RequestOptions */
/** @typedef {import("./sending/refusals.js").Reason} Reason */

export { Headrace } from "./client.js";
export { captureExceptions } from "./exceptions.js";
export { HeadraceError, OutboxFull, OutboxUnavailable, QueryFailed } from "./failures.js";
export { recordErrors, recordRequests } from "./middleware.js";
