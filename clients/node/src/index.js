/** The Node.js client of Headrace: an item is in a file before the call returns, and is stored once. */

export { Headrace } from "./client.js";
export { captureExceptions } from "./exceptions.js";
export { HeadraceError, OutboxFull, OutboxUnavailable, QueryFailed } from "./failures.js";
export { recordErrors, recordRequests } from "./middleware.js";
