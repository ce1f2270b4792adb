// Tracks events without end, and writes the name of each item after the call that recorded it has
// returned: `node node_sender.mjs CLIENT OPTIONS PREFIX`. With the prefix "" it sends what is left.

import { writeSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

const [client, options, prefix] = process.argv.slice(2);
const { Headrace } = await import(client);
const headrace = new Headrace(JSON.parse(options));

if (prefix) {
  for (let number = 0; ; number++) {
    const id = `${prefix}-${number}`;
    if (number % 10) headrace.track("order", { id });
    else headrace.errors(new Error(id));
    writeSync(1, `${id}\n`);
    if (number % 5 === 0) await pause(Math.random() * 6);
  }
}
const isEmpty = await headrace.close(90_000);
console.log(JSON.stringify({ isEmpty, ...headrace.stats() }));
