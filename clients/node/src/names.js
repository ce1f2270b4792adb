/** What is said of a name that does not exist: which one was meant. */

/** A misspelled name has no more letters wrong. */
const MAX_DISTANCE = 2;
/** Shorter names are parts of too many others. */
const MIN_PART = 3;

/**
 * Return a message about a name that is none of those that exist. `others` has names in small
 * letters that have little in common with what they mean.
 * @param {"option" | "field"} kind
 * @param {string} unknown
 * @param {readonly string[]} names
 * @param {Record<string, string>} others
 */
export function unknownName(kind, unknown, names, others) {
  const meant = nearest(unknown, names, others);
  const hint = meant ? `did you mean "${meant}"?` : `the ${kind}s are ${names.join(", ")}`;
  return `unknown ${kind} "${unknown}": ${hint}`;
}

/**
 * Return the name that was meant: one that is a part of the unknown one or has it as a part
 * (`apiKey`, `timeout`), or is spelled much like it. Undefined where none is.
 * @param {string} unknown
 * @param {readonly string[]} names
 * @param {Record<string, string>} others
 */
function nearest(unknown, names, others) {
  const text = unknown.replace(/[^a-z]/gi, "").toLowerCase();
  const known = names.map((name) => ({ name, lower: name.toLowerCase() }));
  const isPart = (/** @type {string} */ part, /** @type {string} */ whole) => part.length >= MIN_PART && whole.includes(part);
  const close = known.map(({ name, lower }) => ({ name, wrong: distance(text, lower) })).sort((one, other) => one.wrong - other.wrong)[0];
  return (
    (Object.hasOwn(others, text) ? others[text] : undefined) ??
    known.find(({ lower }) => isPart(lower, text) || isPart(text, lower))?.name ??
    (close && text.length > MAX_DISTANCE && close.wrong <= MAX_DISTANCE ? close.name : undefined)
  );
}

/**
 * Return how many letters must be changed, added or removed to make one text of the other.
 * @param {string} one
 * @param {string} other
 */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...one].entries()) {
    const next = [index + 1];
    for (const [column, expected] of [...other].entries()) {
      const [diagonal = 0, above = 0] = row.slice(column, column + 2);
      next.push(Math.min(diagonal + Number(letter !== expected), above + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
