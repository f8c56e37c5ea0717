// @ts-check
// Someone else's server answered. What is it, what is the data, did it fail, and is another try worth it?
import assert from "node:assert/strict";
import { CallError } from "waybill";
import { decodeToolResult, toErrorPayload, toToolResult, transcode } from "waybill/formats";

const text = (/** @type {string} */ value) => ({ type: "text", text: value });
const answers = {
  prose: { content: [text("The sum of 1 and 2 is 3")] },
  "a typed result": { content: [text('{"sum":3}')], structuredContent: { sum: 3 } },
  "an envelope block": toToolResult({
    summaryMarkdown: "## Sum",
    payload: { sum: 3 },
    meta: { tool: "add" },
  }),
  "a failure": toToolResult({
    payload: toErrorPayload(new CallError("RATE_LIMITED")),
    meta: { tool: "add" },
  }),
  "a failure that calls itself a success": { content: [text("Error: fetch failed")] },
  "two answers at once": {
    ...toToolResult({ summaryMarkdown: "## Sum", payload: { sum: 3 }, meta: { tool: "add" } }),
    structuredContent: { sum: 4 },
  },
};

for (const [name, answer] of Object.entries(answers)) {
  const { format, obtained = "-", isError, error, odd } = decodeToolResult(answer);
  const notes = odd.map(({ code }) => code).join(", ");
  console.log(
    `${name}: ${format}, ${obtained}${isError ? `, failed (retryable: ${error?.retryable})` : ""} ${notes}`,
  );
}

assert.equal(decodeToolResult(answers["a failure"]).error?.retryable, true);
assert.equal(decodeToolResult(answers["two answers at once"]).format, "ambiguous");

// Written for a client that understands another format, and back without a trace.
const tiered = transcode(answers["an envelope block"], "tiered-envelope");
assert.deepEqual(transcode(tiered, "tool-envelope"), answers["an envelope block"]);
