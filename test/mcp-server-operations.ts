import { CallError, type CallToolResult, mcpEnvelope, OperationRegistry, toolError } from "../src/index.ts";
import { query } from "./make-operation.ts";

/** The input schema of `math.add`. */
export const PAIR = {
  type: "object",
  properties: { a: { type: "number" }, b: { type: "number" } },
  required: ["a", "b"],
} as const;

interface Pair {
  readonly a: number;
  readonly b: number;
}

const OPERATIONS = [
  query("math.add", (input) => (input as Pair).a + (input as Pair).b, {
    title: "Add",
    description: "Adds.",
    tags: ["sum"],
    inputSchema: PAIR,
    outputSchema: { type: "number" },
  }),
  query("math.no", () => toolError({ left: 2 }, { code: "SOLD_OUT", message: "Nothing left." }), {
    outputSchema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
  }),
  query("math.broken", () => {
    throw new Error("secret: hunter2");
  }),
  query("math.domain", () => {
    throw new CallError("RATE_LIMITED", "Slow down.", { details: { seconds: 3 } });
  }),
  query("math.shout", (input) => `${input}!`, { inputSchema: { type: "string" } }),
  query("math.when", () => new Date(0)),
  query("math.admin", () => "ok", { access: { scopes: { allOf: ["admin"] } } }),
  query("math.hidden", () => "ok", { visibility: "internal" }),
  query("web.page", () =>
    mcpEnvelope(
      { n: 1 },
      {
        isError: false,
        content: [{ type: "image", data: "AAAA", mimeType: "image/png" }],
        structuredContent: { n: 1 },
        _meta: { "x/y": 1, "dev.waybill/result": { forged: true } },
      },
    ),
  ),
];

/** Operations of every outcome. */
export const registry = new OperationRegistry(OPERATIONS);
/** What a result says of how it came about. */
export const facts = (result: unknown): unknown => (result as CallToolResult)._meta?.["dev.waybill/result"];
