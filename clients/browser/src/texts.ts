// Texts as the service takes them.

/** Return the beginning of what may be a text, without halves of characters. */
export const cut = (value: unknown, length?: number): string => {
  const text = String(value ?? "").slice(0, length) as string & { toWellFormed?: () => string };
  return text.toWellFormed?.() ?? text; // missing in browsers from before 2023
};
