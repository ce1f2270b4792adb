// Builds the files that Headrace serves. `node build.mjs` writes them, `--check` compares them.
import { build } from "esbuild";
import { minify } from "terser";
import { gzipSync } from "node:zlib";
import { readFileSync, writeFileSync } from "node:fs";

const OUTPUT = new URL("../../src/headrace/http/tracker/", import.meta.url);
const FILES = [
  { entry: "src/index.ts", name: "headrace.js", maxGzipBytes: 2560 },
  { entry: "src/extras.ts", name: "headrace-extras.js", maxGzipBytes: 4096 },
];
const isCheck = process.argv.includes("--check");
let failed = false;

for (const { entry, name, maxGzipBytes } of FILES) {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    sourcemap: "external",
    outfile: name,
    write: false,
  });
  const [bundled, code] = [".map", ".js"].map((end) => outputFiles.find((f) => f.path.endsWith(end)));
  const minified = await minify(
    { [name]: code.text },
    {
      ecma: 2022,
      compress: { passes: 3, pure_getters: true, unsafe_arrows: true, directives: false },
      mangle: true,
      sourceMap: { content: bundled.text, filename: name },
    },
  );
  const files = { [name]: minified.code, [`${name}.map`]: minified.map };
  for (const [file, contents] of Object.entries(files)) {
    const target = new URL(file, OUTPUT);
    if (!isCheck) writeFileSync(target, contents);
    else if (readFileSync(target, "utf8") !== contents) {
      console.error(`${file} is not what its source builds: run npm run build`);
      failed = true;
    }
  }
  const gzipBytes = gzipSync(minified.code, { level: 9 }).length;
  console.log(
    `${name}: ${minified.code.length} bytes, ${gzipBytes} with gzip (at most ${maxGzipBytes})`,
  );
  failed ||= gzipBytes > maxGzipBytes;
}
process.exit(failed ? 1 : 0);
