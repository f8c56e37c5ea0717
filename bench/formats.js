// @ts-check
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { runBench } from "./bench.js";
import { createPayload } from "./fixtures/payload.js";
import { interleave } from "./interleave.js";
import { timing } from "./options.js";
import { judgeMemory, judgeTime, judgeWithin, printTable } from "./report.js";
import { decodeToolResult, parseEnvelopeBlock, toToolResult } from "./waybill.js";

/** @typedef {import("./bench.js").Case} Case */

const meta = { tool: "search", ts: "2025-06-17T18:30:00Z" };
const SIZES = { "1kb": 1_024, "100kb": 102_400 };
const ENCODE_TARGETS = { "1kb": 1.3, "100kb": 1.5 };

/** @param {unknown} payload */
const envelopeOf = (payload) => ({ payload, meta: { ...meta, version: 1 } });

/**
 * Writing a result against `JSON.stringify` of the same envelope alone.
 * @param {keyof typeof SIZES} size @param {boolean} ascii @returns {Case}
 */
function encode(size, ascii) {
  return async (name, options) => {
    const payload = createPayload(SIZES[size], ascii);
    const envelope = envelopeOf(payload);
    const base = "JSON.stringify";
    const sides = {
      [base]: () => JSON.stringify(envelope),
      waybill: () => toToolResult({ summaryMarkdown: "## Done", payload, meta }),
      "by hand": () => `__ENVELOPE_V1__:${Buffer.from(JSON.stringify(envelope)).toString("base64")}`,
    };
    assert.equal(sides.waybill().content[1].text, sides["by hand"]());
    const comparison = await interleave(sides, { ...timing(options), sync: true });
    printTable(name, comparison, base);
    return [judgeWithin(name, comparison, { side: "waybill", base, times: ENCODE_TARGETS[size] })];
  };
}

/**
 * Reading a block strictly against `JSON.parse` of its JSON alone.
 * @param {keyof typeof SIZES} size @param {boolean} ascii @returns {Case}
 */
function decode(size, ascii) {
  return async (name, options) => {
    const envelope = envelopeOf(createPayload(SIZES[size], ascii));
    const json = JSON.stringify(envelope);
    const encoded = Buffer.from(json).toString("base64");
    const block = `__ENVELOPE_V1__:${encoded}`;
    const base = "JSON.parse";
    const sides = {
      [base]: () => JSON.parse(json),
      waybill: () => parseEnvelopeBlock(block),
      "by hand, unchecked": () => JSON.parse(Buffer.from(encoded, "base64").toString("utf8")),
    };
    assert.deepEqual(sides.waybill(), sides[base]());
    const comparison = await interleave(sides, { ...timing(options), sync: true });
    printTable(name, comparison, base);
    return [judgeWithin(name, comparison, { side: "waybill", base, times: 1.3 })];
  };
}

const text = (/** @type {string} */ value) => ({ type: "text", text: value });
const weather = { temperature: 36, conditions: "Light rain / drizzle", humidity: 82 };
const PLAIN = {
  text: { content: [text("The sum of 1 and 2 is 3")] },
  structured: { content: [text(JSON.stringify(weather))], structuredContent: weather },
  error: { content: [text("Entity not found")], isError: true },
};

/** @type {Case} */
async function plain(name, options) {
  const sides = Object.fromEntries(
    Object.entries(PLAIN).map(([kind, result]) => [kind, () => decodeToolResult(result)]),
  );
  const comparison = await interleave(sides, { ...timing(options), sync: true });
  printTable(name, comparison, "text");
  return Object.keys(PLAIN).map((side) => judgeTime(name, comparison, { side, limit: 1_000 }));
}

const run = promisify(execFile);
const MEMORY_BYTES = 10_000_000;

/** The most memory held at once while 10 MB are written or read, beside input and output. @type {Case} */
async function memory(name) {
  if (!existsSync("/proc/self/clear_refs")) {
    console.log(`\n${name}: skipped, because only Linux tells how much memory was held at once`);
    return [];
  }
  const program = fileURLToPath(new URL("./memory/envelope-block.js", import.meta.url));
  const verdicts = [];
  console.log(`\n${name}`);
  for (const way of ["encode", "decode"]) {
    for (const kind of ["ascii", "non-ascii"]) {
      // Little room for garbage, so that what the making of the input left behind does not hide the work.
      const flags = ["--expose-gc", "--max-semi-space-size=1", program, way, kind, String(MEMORY_BYTES)];
      const peaks = [];
      for (let round = 0; round < 5; round++) peaks.push(Number((await run(process.execPath, flags)).stdout));
      verdicts.push(judgeMemory(name, { side: `${way}, ${kind}`, peaks, size: MEMORY_BYTES, times: 3 }));
    }
  }
  return verdicts;
}

await runBench(
  "formats",
  {
    "encode-1kb": encode("1kb", true),
    "encode-1kb-non-ascii": encode("1kb", false),
    "encode-100kb": encode("100kb", true),
    "encode-100kb-non-ascii": encode("100kb", false),
    "decode-1kb": decode("1kb", true),
    "decode-1kb-non-ascii": decode("1kb", false),
    "decode-100kb": decode("100kb", true),
    "decode-100kb-non-ascii": decode("100kb", false),
    plain,
    memory,
  },
  { apart: true },
);
