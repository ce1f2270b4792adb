import assert from "node:assert/strict";
import fs, { appendFileSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { createHash } from "node:crypto";
import { test } from "node:test";
import * as zlib from "node:zlib";
import { OutboxFull, OutboxUnavailable } from "../src/index.js";
import { crc32 } from "../src/outbox/crc32.js";
import { Outbox } from "../src/outbox/outbox.js";
import { decodeLine, encodeDone, encodeItem } from "../src/outbox/record.js";

const DEAD_PID = 2 ** 22 + 1; // above the largest that Linux gives
const HOST = createHash("sha256").update(hostname()).digest("hex").slice(0, 8);

/**
 * @param {number} number
 * @returns {import("../src/outbox/record.js").Item}
 */
const item = (number) => ({ time: 1_700_000_000_000 + number, kind: "track", website: "web_1", json: `{"n":${number}}` });

/** @param {(directory: string, open: (options?: object) => Outbox) => void} run */
function withDirectory(run) {
  const directory = mkdtempSync(join(tmpdir(), "headrace-"));
  try {
    run(directory, (options) => new Outbox({ directory, maxBytes: 1e6, segmentBytes: 1e5, sync: false, ...options }));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** @param {Outbox} outbox */
function drain(outbox) {
  const found = [];
  for (let batch; (batch = outbox.next(2, 1000)); outbox.settle(batch)) found.push(...batch.items);
  return found;
}

/** @param {string} directory */
const files = (directory) => readdirSync(directory).filter((name) => name.endsWith(".log"));

test("the checksum is that of zlib, and of the check value of its standard", () => {
  assert.equal(crc32(Buffer.from("123456789")), 0xcbf43926);
  const { crc32: native } = /** @type {any} */ (zlib); // newer than the types of Node.js 18
  if (native) assert.equal(crc32(Buffer.from("ünïcode\0")), native("ünïcode\0"));
});

test("a line of an item or a mark is read as it was written, and any other byte damages it", () => {
  const lines = [encodeItem({ ...item(1), website: "", json: '{"name":"kö\\n"}' }), encodeItem(item(2)), encodeDone(77)];
  const [home, own, done] = lines.map((line) => decodeLine(line.subarray(0, -1)));
  assert.deepEqual(home, { ...item(1), website: "", json: '{"name":"kö\\n"}' });
  assert.deepEqual(own, item(2));
  assert.deepEqual(done, { done: 77 });
  for (const line of lines) {
    for (let position = 0; position < line.length - 1; position++) {
      const damaged = Buffer.from(line.subarray(0, -1));
      damaged[position] = /** @type {number} */ (damaged[position]) ^ 1;
      assert.equal(decodeLine(damaged), null, `${line} at ${position}`);
    }
  }
});

test("items are read in the order in which they were written, over many files", () => {
  withDirectory((directory, open) => {
    const outbox = open({ segmentBytes: 200 });
    for (let n = 0; n < 50; n++) outbox.append([item(n)]);
    assert.ok(files(directory).length >= 10);
    assert.equal(outbox.pending, 50);
    assert.deepEqual(drain(outbox), Array.from({ length: 50 }, (_, n) => item(n)));
    assert.equal(outbox.pending, 0);
    assert.ok(files(directory).length <= 1, "settled files are deleted");
    outbox.close();
    assert.deepEqual(files(directory), []);
  });
});

test("a client that is closed leaves what is unsettled to the next one, without what is settled", () => {
  withDirectory((_, open) => {
    const first = open();
    for (let n = 0; n < 7; n++) first.append([item(n)]);
    const batch = first.next(3, 1000);
    assert.ok(batch);
    first.settle(batch);
    first.close();
    const second = open();
    assert.equal(second.pending, 4);
    assert.deepEqual(drain(second), [3, 4, 5, 6].map(item));
    second.close();
  });
});

test("an incomplete last line is cut off at every length, and the lines before it are kept", () => {
  const whole = Buffer.concat([encodeItem(item(1)), encodeItem(item(2))]);
  const second = encodeItem(item(1)).length;
  for (let length = second; length < whole.length; length++) {
    withDirectory((directory, open) => {
      writeFileSync(join(directory, "free-1-00000000-0.log"), whole.subarray(0, length));
      const outbox = open();
      assert.equal(outbox.damaged, 0);
      outbox.append([item(3)]);
      assert.deepEqual(drain(outbox), [item(1), item(3)]);
      outbox.close();
    });
  }
});

test("a damaged line is skipped and counted, and the lines around it are read", () => {
  withDirectory((directory, open) => {
    const lines = [1, 2, 3].map((n) => encodeItem(item(n)));
    /** @type {Buffer} */ (lines[1])[30] = 0;
    writeFileSync(join(directory, "free-1-00000000-0.log"), Buffer.concat(lines));
    const outbox = open();
    assert.equal(outbox.damaged, 1);
    assert.equal(outbox.pending, 2);
    assert.deepEqual(drain(outbox), [item(1), item(3)]);
    assert.equal(outbox.pending, 0);
    outbox.close();
  });
});

test("a mark that a crash cut off repeats items, and loses none", () => {
  withDirectory((directory, open) => {
    const first = encodeItem(item(1));
    const path = join(directory, "free-1-00000000-0.log");
    writeFileSync(path, Buffer.concat([first, encodeItem(item(2)), encodeDone(first.length)]));
    truncateSync(path, readFileSync(path).length - 3);
    const outbox = open();
    assert.deepEqual(drain(outbox), [item(1), item(2)]);
    outbox.close();
  });
});

for (const [owner, name, ageMs, isAdopted] of /** @type {const} */ ([
  ["a dead process of this machine", `${HOST}-${DEAD_PID}-0badcafe-0.log`, 0, true],
  ["a living process of this machine", `${HOST}-${process.ppid}-0badcafe-0.log`, 30_000, false],
  ["a process that has been silent for over a minute", `${HOST}-${process.ppid}-0badcafe-0.log`, 61_000, true],
  ["a process of another machine", "0123abcd-1-0badcafe-0.log", 30_000, false],
  ["a silent process of another machine", "0123abcd-1-0badcafe-0.log", 61_000, true],
  ["another client of this process", `${HOST}-${process.pid}-0badcafe-0.log`, 0, false],
  ["a process that had this process id before", `${HOST}-${process.pid}-0badcafe-0.log`, 59_000, true],
])) {
  test(`the file of ${owner} is ${isAdopted ? "" : "not "}adopted`, () => {
    withDirectory((directory, open) => {
      const path = join(directory, name);
      writeFileSync(path, encodeItem(item(1)));
      const changed = (Date.now() - ageMs) / 1000;
      utimesSync(path, changed, changed);
      const outbox = open();
      assert.equal(outbox.pending, isAdopted ? 1 : 0);
      outbox.close();
    });
  });
}

test("an item is written again where another process took the file for abandoned", () => {
  withDirectory((directory, open) => {
    const outbox = open();
    outbox.append([item(1)]);
    const [name] = files(directory);
    renameSync(join(directory, String(name)), join(directory, "free-1-00000000-0.log"));
    outbox.append([item(2)]);
    assert.deepEqual(drain(outbox), [item(2)], "item 1 belongs to who adopted it");
    const adopter = open();
    assert.deepEqual(drain(adopter), [item(1), item(2)], "item 2 is there twice, with one id");
    outbox.close();
    adopter.close();
  });
});

for (const [what, use] of /** @type {[string, (outbox: Outbox) => void][]} */ ([
  ["an append", (outbox) => outbox.append([item(4)])],
  ["a heartbeat", (outbox) => outbox.heartbeat()],
  ["its end", (outbox) => outbox.close()],
])) {
  test(`what waits in an outbox whose directory was deleted is in new files after ${what}`, () => {
    withDirectory((directory, open) => {
      const outbox = open({ segmentBytes: 100 });
      for (const n of [1, 2, 3]) outbox.append([item(n)]);
      const batch = outbox.next(1, 1000);
      rmSync(directory, { recursive: true });
      use(outbox);
      if (batch) outbox.settle(batch); // its request was on its way
      outbox.close();
      const next = open();
      assert.deepEqual(drain(next), (what === "its end" ? [1, 2, 3] : what === "an append" ? [2, 3, 4] : [2, 3]).map(item));
      next.close();
    });
  });
}

test("an item is refused where it can be in no file, and those before it stay", () => {
  withDirectory((directory, open) => {
    const outbox = open();
    outbox.append([item(1)]);
    rmSync(directory, { recursive: true });
    writeFileSync(directory, "");
    assert.throws(() => outbox.append([item(2)]), OutboxUnavailable);
    rmSync(directory);
    outbox.append([item(3)]);
    assert.deepEqual(drain(outbox), [item(1), item(3)]);
    outbox.close();
  });
});

test("an outbox that closes says that items are lost with its directory", () => {
  withDirectory((directory, open) => {
    const outbox = open();
    outbox.append([item(1)]);
    rmSync(directory, { recursive: true });
    writeFileSync(directory, "");
    assert.throws(() => outbox.close(), OutboxUnavailable);
  });
});

test("what another process adopted, settled and deleted is not written again", () => {
  withDirectory((directory, open) => {
    const outbox = open();
    outbox.append([item(1)]);
    const [name] = files(directory);
    renameSync(join(directory, String(name)), join(directory, "free-1-00000000-0.log"));
    const adopter = open();
    assert.deepEqual(drain(adopter), [item(1)]);
    adopter.close();
    outbox.append([item(2)]);
    assert.deepEqual(drain(outbox), [item(2)]);
    outbox.close();
  });
});

test("two processes that start together never adopt the same file", () => {
  withDirectory((directory, open) => {
    for (let n = 0; n < 20; n++) writeFileSync(join(directory, `free-1-00000000-${n}.log`), encodeItem(item(n)));
    const outboxes = [open(), open()];
    const found = outboxes.flatMap(drain);
    assert.equal(found.length, 20);
    outboxes.forEach((outbox) => outbox.close());
  });
});

test("a full outbox refuses an item, and takes it when there is room", () => {
  withDirectory((_, open) => {
    const outbox = open({ maxBytes: 300, segmentBytes: 100 });
    let count = 0;
    assert.throws(() => {
      for (;;) outbox.append([item(count++)]);
    }, new OutboxFull(300));
    assert.ok(outbox.bytes <= 300);
    drain(outbox);
    outbox.append([item(99)]);
    assert.deepEqual(drain(outbox), [item(99)]);
    outbox.close();
  });
});

test("the items of one call are written together, with the flush to the disk that was asked for", () => {
  withDirectory((_, open) => {
    const outbox = open({ sync: true });
    outbox.append([item(1), item(2), item(3)]);
    assert.equal(outbox.pending, 3);
    outbox.close();
  });
});

test("an item that the disk did not confirm is not taken", (context) => {
  withDirectory((_, open) => {
    const outbox = open({ sync: true });
    outbox.append([item(1)]);
    const flush = context.mock.method(fs, "fdatasyncSync", () => {
      throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    });
    syncBuiltinESMExports();
    assert.throws(() => outbox.append([item(2)]), OutboxUnavailable);
    flush.mock.restore();
    syncBuiltinESMExports();
    outbox.append([item(3)]);
    assert.equal(outbox.pending, 2);
    assert.deepEqual(drain(outbox), [item(1), item(3)]);
    outbox.close();
  });
});

for (const [operation, opened] of /** @type {const} */ ([["openSync", 0], ["readSync", 1]])) {
  test(`a file of a dead process in which ${operation} fails is adopted later`, (context) => {
    withDirectory((directory, open) => {
      const outbox = open();
      appendFileSync(join(directory, `${HOST}-${DEAD_PID}-00000000-0.log`), encodeItem(item(1)));
      const closed = context.mock.method(fs, "closeSync");
      const failing = context.mock.method(fs, operation, () => {
        throw Object.assign(new Error("input/output error"), { code: "EIO" });
      });
      syncBuiltinESMExports();
      assert.throws(() => outbox.heartbeat(), { code: "EIO" });
      assert.equal(closed.mock.callCount(), opened);
      for (const { mock } of [failing, closed]) mock.restore();
      syncBuiltinESMExports();
      outbox.heartbeat();
      assert.deepEqual(drain(outbox), [item(1)]);
      outbox.close();
    });
  });
}

test("a directory that cannot be created is an error with its reason", () => {
  withDirectory((directory, open) => {
    const path = join(directory, "file");
    appendFileSync(path, "");
    assert.throws(() => open({ directory: join(path, "below") }), (error) => error instanceof OutboxUnavailable && /cannot write the outbox .*: ENOTDIR/.test(error.message));
  });
});

test("an item larger than what is read at a time is read whole", () => {
  withDirectory((_, open) => {
    const outbox = open();
    const large = { ...item(1), json: JSON.stringify({ text: "x".repeat(10_000) }) };
    outbox.append([large]);
    outbox.append([item(2)]);
    assert.deepEqual(drain(outbox), [large, item(2)]);
    outbox.close();
  });
});
