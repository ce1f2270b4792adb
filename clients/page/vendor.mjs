// Writes the vendored libraries of the page from their npm packages; `--check` compares them.
// Browsers need a path where npm has a package name, and uPlot's small file exports nothing:
// these are the only changes.
import { readFileSync, writeFileSync } from "node:fs";

const OUTPUT = new URL("../../src/headrace/http/page/vendor/", import.meta.url);
const PACKAGES = new URL("node_modules/", import.meta.url);
const NAMES = {
  preact: "./preact.js",
  "preact/hooks": "./hooks.js",
  "@preact/signals-core": "./signals-core.js",
};
const FILES = [
  { name: "preact.js", from: "preact/dist/preact.mjs" },
  { name: "hooks.js", from: "preact/hooks/dist/hooks.mjs" },
  { name: "signals-core.js", from: "@preact/signals-core/dist/signals-core.mjs" },
  { name: "signals.js", from: "@preact/signals/dist/signals.mjs" },
  { name: "htm.js", from: "htm/dist/htm.mjs" },
  { name: "uplot.js", from: "uplot/dist/uPlot.iife.min.js", end: "export default uPlot;\n" },
  { name: "LICENSE.preact", from: "preact/LICENSE" },
  { name: "LICENSE.signals", from: "@preact/signals/LICENSE" },
  { name: "LICENSE.htm", from: "htm/LICENSE" },
  { name: "LICENSE.uplot", from: "uplot/LICENSE" },
];
const isCheck = process.argv.includes("--check");
let failed = false;

for (const { name, from, end = "" } of FILES) {
  const source = readFileSync(new URL(from, PACKAGES), "utf8");
  const named = source
    .replace(/\bfrom\s*"([^"./][^"]*)"/g, (_, specifier) => `from"${NAMES[specifier]}"`)
    .replace(/^\/\/# sourceMappingURL=.*$/gm, "")
    .trimEnd();
  const contents = `${named}\n${end}`;
  const target = new URL(name, OUTPUT);
  if (!isCheck) writeFileSync(target, contents);
  else if (readFileSync(target, "utf8") !== contents) {
    failed = true;
    console.error(`${name} differs from ${from}: run \`npm run vendor\``);
  }
}
process.exit(failed ? 1 : 0);
