import type { AnyOperation } from "../src/index.ts";
import { query, stream } from "./make-operation.ts";

const NOWHERE = { type: "object", properties: { a: { $ref: "#/nowhere" } } };

/** Operations whose schemas are refused, as a hostile document may declare them, and one that is right. */
export function refusedOperations(): AnyOperation[] {
  const operations = [
    query("fine.one", () => 1, { inputSchema: { type: "object", properties: { a: { type: "string" } } } }),
    query("bad.input", () => 1, { inputSchema: NOWHERE }),
    query("bad.loop", () => 1, { inputSchema: { allOf: [{ $ref: "#" }] } }),
    query("bad.pattern", () => 1, { inputSchema: { type: "string", pattern: "(" } }),
    query("bad.output", () => 1, { outputSchema: { type: "strin" } }),
    query("bad.error", () => 1, { errors: [{ code: "NO", httpStatus: 409, schema: NOWHERE }] }),
    stream("bad.stream", async function* () {}, { inputSchema: NOWHERE, outputSchema: NOWHERE }),
    query("bad.reading", () => 1),
  ];
  return operations.map(lazily);
}

/** An operation as importers make it: its schemas are read when they are asked for first. */
function lazily({ inputSchema, outputSchema, ...operation }: AnyOperation): AnyOperation {
  return Object.freeze({
    ...operation,
    get inputSchema() {
      if (operation.id === "bad.reading") throw new TypeError("What it takes cannot be read.");
      return inputSchema;
    },
    get outputSchema() {
      return outputSchema;
    },
  }) as AnyOperation;
}

/** What is refused of them, one warning each. */
export const REFUSED = [
  'The input schema of "bad.input"',
  'The input schema of "bad.loop"',
  'The input schema of "bad.pattern"',
  'The input schema of "bad.reading"',
  'The input schema of "bad.stream"',
  'The output schema of "bad.output"',
  'The output schema of "bad.stream"',
  'The schema of the error NO of "bad.error"',
];

/** The schemas that warnings are about. */
export function toldOf(warnings: readonly string[]): string[] {
  return warnings.map((message) => message.split(" is refused;")[0] ?? "").sort();
}
