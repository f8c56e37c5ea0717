import {
  type AnyOperation,
  CallError,
  defineOperation,
  type ERROR_CODES,
  Type,
  toolError,
  withCursor,
} from "../src/index.ts";
import { query, stream } from "./make-operation.ts";
import { withFacts } from "./with-facts.ts";

/** Values an operation may answer with; each must arrive the same whichever way it was called. */
export const VALUES: Readonly<Record<string, unknown>> = {
  object: { id: "1", tags: ["a", "b"], nested: { deep: [1, { x: null }] } },
  empty: {},
  list: [1, 2, 3],
  emptyList: [],
  rows: Array.from({ length: 300 }, (_, i) => ({ i, name: `row ${i}` })),
  text: "plain ü€😀 text",
  jsonText: '{"looks":"like json"}',
  number: 42,
  numberText: "42",
  zero: 0,
  minus: -1.5,
  no: false,
  yes: true,
  nothing: null,
  blank: "",
  none: undefined,
  resultMember: { result: [1] },
  envelopeLike: { data: 1, meta: { source: "local", operationId: "x.y", timestamp: 1 } },
  contentLike: { content: [{ type: "text", text: "no" }], isError: true },
  bytes: Uint8Array.of(0, 1, 254, 255),
  date: new Date(86_400_000),
  big: 12_345_678_901_234_567_890n,
  mixed: { at: new Date(5), bytes: Uint8Array.of(7), none: undefined, list: [1n] },
  keys: JSON.parse('{"__proto__": 1, "constructor": 2, "a.b": 3, "": 4}'),
};

const rows = Type.Array(Type.Object({ n: Type.Number() }));

/** Operations of every kind, the same for every way of calling them. */
export function roundTripOperations(): readonly AnyOperation[] {
  return [
    query("value.give", (input) => VALUES[(input as { name: string }).name], {
      inputSchema: Type.Object({ name: Type.String() }),
    }),
    query("value.echo", (input) => input),
    query("typed.object", (input) => ({ n: (input as { n: number }).n + 1 }), {
      inputSchema: Type.Object({ n: Type.Number() }, { additionalProperties: false }),
      outputSchema: Type.Object({ n: Type.Number() }),
      title: "Adds one",
      description: "Adds one to a number.",
      tags: ["math"],
      annotations: { readOnly: true, idempotent: true },
    }),
    query("typed.list", () => [{ n: 1 }, { n: 2 }], { outputSchema: rows }),
    query("typed.number", () => 7, { outputSchema: Type.Number() }),
    query("typed.result", () => ({ result: 7 }), { outputSchema: Type.Object({ result: Type.Number() }) }),
    query("typed.closedResult", () => ({ result: [1] }), {
      outputSchema: Type.Object({ result: Type.Array(Type.Number()) }, { additionalProperties: false }),
    }),
    query("typed.openInput", (input) => input, { inputSchema: { type: "object" } }),
    query("marked.readOnly", () => 1, { annotations: { readOnly: true } }),
    query("marked.idempotent", () => 1, { annotations: { idempotent: true } }),
    query("marked.writing", () => 1, { annotations: { readOnly: false } }),
    query("paged.list", (input) => {
      const { from = 0, cursor = String(from) } = (input ?? {}) as { from?: number; cursor?: string };
      const page = Number(cursor) < 3 ? { next: String(Number(cursor) + 1) } : {};
      return withFacts([{ page: cursor }], { page });
    }),
    query("typed.nullable", () => null, { outputSchema: Type.Union([Type.Null(), Type.String()]) }),
    query("typed.text", (input) => `got ${String(input)}`, {
      inputSchema: Type.String({ minLength: 1 }),
      outputSchema: Type.String(),
    }),
    defineOperation({
      namespace: "change",
      name: "make",
      version: "2.1.0",
      type: "mutation",
      description: "Changes something.",
      inputSchema: Type.Object({ to: Type.Optional(Type.String()) }),
      annotations: { destructive: true, openWorld: false },
      handler: (input) => ({ changed: input.to ?? "nothing" }),
    }),
    query("odd.name.with-many_signs.and/slashes", () => "reached"),
    query(`long.${"x".repeat(200)}`, () => "reached"),
    query("fail.code", (input) => {
      const { code } = input as { code: keyof typeof ERROR_CODES };
      throw new CallError(code, `It is ${code}.`, { details: { n: 1, list: ["a"] } });
    }),
    query(
      "fail.domain",
      () => {
        throw new CallError("OUT_OF_STOCK", "None left.", { details: { left: 0 } });
      },
      { errors: [{ code: "OUT_OF_STOCK", description: "Nothing left.", httpStatus: 409 }] },
    ),
    query("fail.foreign", () => {
      throw new Error("SECRET of the house");
    }),
    query("fail.null", () => toolError(null, { code: "NOTHING", message: "There is nothing." })),
    query("fail.silent", () => toolError(null)),
    query("fail.tool", (input) =>
      toolError(input, { code: "NO_ROOM", message: "There is no room.", details: { floor: 3 } }),
    ),
    query("fail.plain", () => toolError(null)),
    stream("tick.count", async function* (input) {
      for (let n = 0; n < (input as { to: number }).to; n += 1)
        yield withCursor({ n, at: new Date(n) }, `c${n}`);
    }),
    stream("tick.fails", async function* () {
      yield 1;
      throw new CallError("CONFLICT", "Somebody else ticked.", { details: { at: 1 } });
    }),
    query("wait.long", (_, { signal }) => {
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    }),
    query("ask.person", (_, { elicit }) =>
      elicit({
        message: "Your name?",
        requestedSchema: { type: "object", properties: { name: { type: "string" } } },
      }),
    ),
  ];
}
