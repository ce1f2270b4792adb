/** Server-sent events, as the service writes them. Pure. */

/** @typedef {{kind: string, id: string, data: string}} StreamEvent  `kind` is "" for a comment */

/** The events of a text, and the rest of it, which is the beginning of one. @param {string} text */
export function splitEvents(text) {
  const blocks = text.split("\n\n");
  const rest = blocks.pop() ?? "";
  return { events: blocks.map(eventOf), rest };
}

/** @param {string} block @returns {StreamEvent} */
function eventOf(block) {
  const field = (/** @type {string} */ name) => block.match(new RegExp(`^${name}: (.*)$`, "m"))?.[1] ?? "";
  return { kind: field("event"), id: field("id"), data: field("data") };
}
