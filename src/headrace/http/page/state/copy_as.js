/** A query as what can be pasted elsewhere. Keys are read from the environment, never shown. Pure. */

/** @typedef {{origin: string, website: string, body: object}} Call */

/** @type {Record<string, (call: Call) => string>} */
export const COPIES = {
  curl,
  command,
  python,
  json: ({ body }) => JSON.stringify(body, null, 2),
};

/** @param {Call} call */
function curl({ origin, website, body }) {
  return [
    `curl -sS ${quoted(`${origin}/v1/query/custom?website_id=${encodeURIComponent(website)}`)} \\`,
    '  -H "Authorization: Bearer $HEADRACE_API_KEY" \\',
    "  -H 'Content-Type: application/json' \\",
    `  -d ${quoted(JSON.stringify(body))}`,
  ].join("\n");
}

/** @param {Call} call */
function command({ origin, website, body }) {
  return `printf %s ${quoted(JSON.stringify(body))} |\n  headrace query - --url ${quoted(origin)} --website ${quoted(website)}`;
}

/** @param {Call} call */
function python({ origin, website, body }) {
  return [
    "import os",
    "",
    "import requests",
    "",
    "reply = requests.post(",
    `    ${JSON.stringify(`${origin}/v1/query/custom`)},`,
    `    params={"website_id": ${JSON.stringify(website)}},`,
    "    headers={\"Authorization\": f\"Bearer {os.environ['HEADRACE_API_KEY']}\"},",
    `    json=${literal(body, 4)},`,
    "    timeout=30,",
    ")",
    "result = reply.json()",
    'if not result["success"]:',
    '    raise SystemExit(result["error"])',
    'for row in result["data"]:',
    "    print(row)",
  ].join("\n");
}

/** @param {string} text for a POSIX shell */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A value as Python writes it. @param {unknown} value @param {number} indent @returns {string} */
function literal(value, indent) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = " ".repeat(indent + 4);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const entries = Array.isArray(value)
    ? value.map((one) => literal(one, indent + 4))
    : Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${literal(one, indent + 4)}`);
  return entries.length ? `${open}\n${entries.map((entry) => `${inner}${entry},\n`).join("")}${" ".repeat(indent)}${close}` : `${open}${close}`;
}
