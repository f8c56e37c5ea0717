// @ts-check
import { readFileSync, writeFileSync } from "node:fs";
import { createPayload } from "../fixtures/payload.js";
import { parseEnvelopeBlock, toToolResult } from "../waybill.js";

/** Prints how many bytes were held at the highest point of one call, beside its input and its output. */
const [, , way, kind, bytes] = process.argv;
const meta = { tool: "search", ts: "2025-06-17T18:30:00Z" };

/** @param {"VmHWM" | "VmRSS"} field @returns {number} bytes */
function held(field) {
  const line = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(readFileSync("/proc/self/status", "utf8"));
  return Number(line?.[1]) * 1_024;
}

/** @param {unknown} payload @returns {string} */
const encode = (payload) => toToolResult({ summaryMarkdown: "## Done", payload, meta }).content[1].text;

/** What is alive, on the heap and beside it. */
function alive() {
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const payload = createPayload(Number(bytes), kind === "ascii");
const input = way === "encode" ? payload : encode(payload);
const work = way === "encode" ? () => encode(input) : () => parseEnvelopeBlock(String(input));
const before = { alive: alive(), held: held("VmRSS") };
writeFileSync("/proc/self/clear_refs", "5");
const output = work();
const peak = held("VmHWM");
const made = alive() - before.alive;
console.log(Math.max(0, peak - before.held - made));
if (output === undefined || input === undefined) throw new Error("nothing was made");
