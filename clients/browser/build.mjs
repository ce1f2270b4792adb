// Builds the files that Headrace serves. `node build.mjs` writes them, `--check` compares them, and
// `--release` also keeps the scripts under their hash, for the pages that pin this release.
import { build } from "esbuild";
import { minify } from "terser";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const OUTPUT = new URL("../../src/headrace/http/tracker/", import.meta.url);
const EXTRAS = "headrace-extras.js";
/** Which short names are given first: as good for gzip as a search of some minutes could find. */
const CORE_LETTERS = "eartZdfnbqxipcSkzNTOGmXvgBIJWRwVUjlKuyhHCFDMPEQYLAos";
const EXTRAS_LETTERS = "eaticolhdnpPrsubgCmvSTGLUkWAYDXzBxwFNZRHEQOVKyMfIqjJ";
/** Properties of `web-vitals` that only its own functions and `vitals.ts` read. */
const VITALS_PROPERTIES =
  /^(delta|entries|firstHiddenTime|navigation(InteractionId|StartTime|Type|URL)|onHidden|rating|report(AllChanges|SoftNavs))$/;
/** The second file comes first, because the core names its hash. */
const FILES = [
  {
    entry: "src/extras.ts",
    name: EXTRAS,
    maxGzipBytes: 4096,
    letters: EXTRAS_LETTERS,
    mangleProps: VITALS_PROPERTIES,
  },
  {
    entry: "src/index.ts",
    name: "headrace.js",
    maxGzipBytes: 2560,
    letters: CORE_LETTERS,
    banner: "self.headrace?.put||", // a component loads the script again when it is mounted again
  },
  { entry: "src/details.ts", name: "headrace-details.js", maxGzipBytes: 6144 },
];
/** As many as in the address at which the service has the file (`files.py`). */
const HASH_DIGITS = 8;
const isCheck = process.argv.includes("--check");
const define = {};
let failed = false;

/** SHA-256, because the core has a limit: the longer digests that pages use cost 18 bytes more. */
const digestOf = (code) => createHash("sha256").update(code).digest();

/** One kind of declaration is 15 bytes shorter with gzip. The columns of the source map stay. */
const declareAlike = (code) => code.replace(/\b(const|var) /g, (word) => "let".padEnd(word.length));

/** The tracker itself compares values of one type alone: 4 bytes shorter. */
const compareLoosely = {
  name: "compare loosely",
  setup: ({ onLoad }) =>
    onLoad({ filter: /src.\w+\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replace(/ ([=!]=)= /g, " $1  "),
      loader: "ts",
    })),
};

/** One letter, then two. */
const shortName = (letters, n) =>
  (letters[Math.floor(n / letters.length) - 1] ?? "") + letters[n % letters.length];

/** Shorten code, then its names: both in one step is some bytes longer. */
const minified = async (name, { code, map }, letters) => {
  const shorter = await minify(
    { [name]: code },
    {
      ecma: 2022,
      compress: {
        passes: 3,
        pure_getters: true,
        unsafe_arrows: true,
        booleans_as_integers: true,
        lhs_constants: false,
        hoist_funs: true,
        inline: 1,
        directives: false,
      },
      mangle: false,
      sourceMap: { content: map, filename: name },
    },
  );
  return minify(
    { [name]: shorter.code },
    {
      ecma: 2022,
      compress: false,
      mangle: letters ? { nth_identifier: { get: (n) => shortName(letters, n) } } : true,
      sourceMap: { content: shorter.map, filename: name },
    },
  );
};

for (const { entry, name, maxGzipBytes, letters, mangleProps, banner = "" } of FILES) {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    sourcemap: "external",
    banner: { js: banner },
    plugins: [compareLoosely],
    ...(mangleProps && { mangleProps }),
    outfile: name,
    define,
    write: false,
  });
  const [bundledMap, bundled] = [".map", ".js"].map((end) => outputFiles.find((f) => f.path.endsWith(end)));
  const { code, map } = await minified(
    name,
    { code: declareAlike(bundled.text), map: bundledMap.text },
    letters,
  );
  const files = { [name]: code, [`${name}.map`]: map };
  for (const [file, contents] of Object.entries(files)) {
    const target = new URL(file, OUTPUT);
    if (!isCheck) writeFileSync(target, contents);
    else if (readFileSync(target, "utf8") !== contents) {
      console.error(`${file} is not what its source builds: run npm run build`);
      failed = true;
    }
  }
  const digest = digestOf(code);
  const pinned = name.replace(".js", `.${digest.toString("hex").slice(0, HASH_DIGITS)}.js`);
  if (process.argv.includes("--release")) {
    mkdirSync(new URL("releases/", OUTPUT), { recursive: true });
    writeFileSync(new URL(`releases/${pinned}`, OUTPUT), code);
  }
  if (name === EXTRAS) {
    define.EXTRAS_FILE = JSON.stringify(pinned);
    define.EXTRAS_INTEGRITY = JSON.stringify(`sha256-${digest.toString("base64")}`);
  }
  const gzipBytes = gzipSync(code, { level: 9 }).length;
  console.log(
    `${name}: ${code.length} bytes, ${gzipBytes} with gzip (at most ${maxGzipBytes})`,
  );
  failed ||= gzipBytes > maxGzipBytes;
}
process.exit(failed ? 1 : 0);
