import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { Type } from "typebox";
import * as v from "valibot";
import { assertType, describe, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { type Client, createClient, type TaskHandle } from "../client/client.ts";
import { localEnvelope, type ResponseEnvelope, result, toolError, withData } from "../envelope/envelope.ts";
import type { Executor } from "../registry/executor.ts";
import { OperationRegistry } from "../registry/registry.ts";
import { defineOperation } from "./operation.ts";
import type { OperationContext } from "./operation-context.ts";
import type { AnyOperation, InputOf, OutputOf } from "./operation-types.ts";
import { withCursor } from "./with-cursor.ts";

declare module "./operation-types.ts" {
  interface OperationMap {
    "types.known": { input: { id: string }; output: { name: string } };
    "types.deep/er.name": { input: undefined; output: number };
  }
}

const base = { namespace: "types", version: "1.0.0", type: "query", description: "" } as const;

const typebox = defineOperation({
  ...base,
  name: "typebox",
  inputSchema: Type.Object({ title: Type.String(), count: Type.Optional(Type.Number()) }),
  outputSchema: Type.Object({ id: Type.String() }),
  handler: async ({ title, count }, context) => {
    expectTypeOf(title).toEqualTypeOf<string>();
    expectTypeOf(count).toEqualTypeOf<number | undefined>();
    expectTypeOf(context).toEqualTypeOf<OperationContext>();
    return { id: title };
  },
});

const literal = defineOperation({
  ...base,
  name: "literal",
  inputSchema: {
    type: "object",
    properties: { title: { type: "string" }, kind: { enum: ["a", "b"] } },
    required: ["title"],
  },
  outputSchema: { type: "array", items: { type: "number" } },
  handler: ({ title, kind }) => {
    expectTypeOf(title).toEqualTypeOf<string>();
    expectTypeOf(kind).toEqualTypeOf<"a" | "b" | undefined>();
    return [title.length];
  },
});

const zod = defineOperation({
  ...base,
  name: "zod",
  inputSchema: z.object({ n: z.string().transform(Number), unit: z.string().default("kg") }),
  outputSchema: z.object({ n: z.number(), unit: z.string().default("kg") }),
  handler: ({ n, unit }) => {
    expectTypeOf(n).toEqualTypeOf<number>();
    expectTypeOf(unit).toEqualTypeOf<string>();
    return { n };
  },
});

const ark = defineOperation({
  ...base,
  name: "ark",
  inputSchema: type({ n: "number", "note?": "string" }),
  outputSchema: type("string"),
  handler: ({ n, note }) => {
    expectTypeOf(n).toEqualTypeOf<number>();
    expectTypeOf(note).toEqualTypeOf<string | undefined>();
    return "x";
  },
});

const valibot = defineOperation({
  ...base,
  name: "valibot",
  inputSchema: toStandardJsonSchema(v.object({ n: v.number() })),
  outputSchema: toStandardJsonSchema(v.boolean()),
  handler: ({ n }) => {
    expectTypeOf(n).toEqualTypeOf<number>();
    return n > 0;
  },
});

const bare = defineOperation({
  ...base,
  name: "bare",
  handler: (input) => {
    expectTypeOf(input).toEqualTypeOf<unknown>();
    return 5;
  },
});

const ticks = defineOperation({
  ...base,
  name: "ticks",
  type: "subscription",
  inputSchema: Type.Object({ from: Type.Integer() }),
  outputSchema: Type.Integer(),
  async *handler({ from }) {
    yield from;
    yield localEnvelope(1, "types.ticks");
    yield withCursor(from, "cursor");
  },
});

const registry = new OperationRegistry([typebox, literal, zod, ark, valibot, bare, ticks]);

describe("defineOperation", () => {
  it("RE-10 infers input and output from every kind of schema", () => {
    expectTypeOf<InputOf<typeof typebox>>().toEqualTypeOf<{ title: string; count?: number }>();
    expectTypeOf<OutputOf<typeof typebox>>().toEqualTypeOf<{ id: string }>();
    expectTypeOf<InputOf<typeof literal>>().toEqualTypeOf<{ title: string; kind?: "a" | "b" }>();
    expectTypeOf<OutputOf<typeof literal>>().toEqualTypeOf<number[]>();
    expectTypeOf<InputOf<typeof zod>>().toEqualTypeOf<{ n: string; unit?: string | undefined }>();
    expectTypeOf<OutputOf<typeof zod>>().toEqualTypeOf<{ n: number; unit: string }>();
    expectTypeOf<InputOf<typeof ark>>().toEqualTypeOf<{ n: number; note?: string }>();
    expectTypeOf<OutputOf<typeof ark>>().toEqualTypeOf<string>();
    expectTypeOf<InputOf<typeof valibot>>().toEqualTypeOf<{ n: number }>();
    expectTypeOf<OutputOf<typeof valibot>>().toEqualTypeOf<boolean>();
    expectTypeOf<InputOf<typeof bare>>().toEqualTypeOf<unknown>();
    expectTypeOf<OutputOf<typeof bare>>().toEqualTypeOf<unknown>();
    expectTypeOf<OutputOf<typeof ticks>>().toEqualTypeOf<number>();
  });

  it("RE-10 keeps the id and the kind as literals, and forgets all types on request", () => {
    expectTypeOf(typebox.id).toEqualTypeOf<"types.typebox">();
    expectTypeOf(ticks.type).toEqualTypeOf<"subscription">();
    assertType<AnyOperation[]>([typebox, literal, zod, ark, valibot, bare, ticks]);
  });

  it("RE-10 needs a namespace, a name and a handler; an operation has the rest", () => {
    const least = defineOperation({ namespace: "types", name: "least", handler: () => 1 });
    expectTypeOf(least.type).toEqualTypeOf<"mutation">();
    expectTypeOf(least.version).toEqualTypeOf<string>();
    expectTypeOf(least.description).toEqualTypeOf<string>();
    const typed = defineOperation({
      namespace: "types",
      name: "typed",
      inputSchema: Type.Object({ a: Type.Number() }),
      handler: ({ a }) => a + 1,
    });
    expectTypeOf<InputOf<typeof typed>>().toEqualTypeOf<{ a: number }>();
    // @ts-expect-error a name is needed
    defineOperation({ namespace: "types", handler: () => 1 });
    defineOperation({
      namespace: "types",
      name: "stream",
      outputSchema: Type.Number(),
      // @ts-expect-error streams say that they are subscriptions
      async *handler() {
        yield 1;
      },
    });
  });

  it("RE-10 refuses a handler that returns something else", () => {
    const text = { ...base, name: "x", outputSchema: Type.String() } as const;
    // @ts-expect-error a number is not a string
    defineOperation({ ...text, handler: () => 5 });
    // @ts-expect-error neither is a promise of one
    defineOperation({ ...text, handler: async () => 5 });
    // @ts-expect-error a subscription yields
    defineOperation({ ...text, type: "subscription", handler: () => "x" });
  });

  it("RE-11 lets a handler return an envelope instead", () => {
    defineOperation({
      ...base,
      name: "x",
      outputSchema: Type.String(),
      handler: () => toolError({ any: 1 }),
    });
    defineOperation({
      ...base,
      name: "x",
      outputSchema: Type.String(),
      handler: async () => localEnvelope("x", "a.b"),
    });
  });
});

const STATUS = Type.Object({ status: Type.Union([Type.Literal("open"), Type.Literal("closed")]) });
const ZOD_STATUS = z.object({ status: z.enum(["open", "closed"]) });
const SHAPE = Type.Union([
  Type.Object({ kind: Type.Literal("circle"), r: Type.Number() }),
  Type.Object({ kind: Type.Literal("square"), sides: Type.Tuple([Type.Literal(4), Type.String()]) }),
]);
const spec = { ...base, name: "x" } as const;

describe("a handler's literals need no as const", () => {
  it("RE-10 in what it returns, whatever the schema", () => {
    defineOperation({ ...spec, outputSchema: STATUS, handler: () => ({ status: "open" }) });
    defineOperation({ ...spec, outputSchema: ZOD_STATUS, handler: () => ({ status: "open" }) });
    defineOperation({
      ...spec,
      outputSchema: { type: "object", properties: { status: { enum: ["open"] } }, required: ["status"] },
      handler: () => ({ status: "open" }),
    });
    defineOperation({ ...spec, outputSchema: Type.Literal("open"), handler: () => "open" });
    // @ts-expect-error "opened" is not one of them
    defineOperation({ ...spec, outputSchema: STATUS, handler: () => ({ status: "opened" }) });
    // @ts-expect-error nor is it later
    defineOperation({ ...spec, outputSchema: STATUS, handler: async () => ({ status: "opened" }) });
  });

  it("RE-10 in what it promises, in one branch of several, deep in the data", () => {
    defineOperation({ ...spec, outputSchema: STATUS, handler: async () => ({ status: "open" }) });
    defineOperation({
      ...spec,
      inputSchema: Type.Object({ late: Type.Boolean() }),
      outputSchema: ZOD_STATUS,
      handler: async ({ late }, { identity }) => {
        if (identity === undefined) return toolError({ any: 1 });
        if (late) return { status: "closed" };
        return result({ status: "open" }, { summary: "It is open." });
      },
    });
    defineOperation({
      ...spec,
      outputSchema: Type.Object({ data: Type.Array(SHAPE), meta: STATUS, none: Type.Null() }),
      handler: async () => ({
        data: [
          { kind: "circle", r: 1 },
          { kind: "square", sides: [4, "cm"] },
        ],
        meta: { status: "open" },
        none: null,
      }),
    });
  });

  it("RE-10 in a callback, for a member of the data", () => {
    const ids = ["1", "2"];
    defineOperation({
      ...spec,
      outputSchema: Type.Object({ rows: Type.Array(STATUS) }),
      handler: () => ({ rows: ids.map(() => ({ status: "open" })) }),
    });
    defineOperation({
      ...spec,
      inputSchema: Type.Object({ ids: Type.Array(Type.String()) }),
      outputSchema: Type.Object({ rows: Type.Array(STATUS) }),
      handler: async ({ ids }) => ({ rows: ids.map((id) => ({ status: id === "" ? "closed" : "open" })) }),
    });
  });

  it("RE-14 in what it yields", () => {
    defineOperation({
      ...spec,
      type: "subscription",
      outputSchema: STATUS,
      async *handler() {
        yield { status: "open" };
        yield withCursor({ status: "closed" }, "c1");
        yield result({ status: "open" });
      },
    });
    defineOperation({
      ...spec,
      type: "subscription",
      outputSchema: STATUS,
      // @ts-expect-error "opened" is not one of them
      async *handler() {
        yield { status: "opened" };
      },
    });
  });

  it("X-7 in result, whose data is held against the declared output", () => {
    defineOperation({ ...spec, outputSchema: STATUS, handler: () => result({ status: "open" }) });
    defineOperation({ ...spec, outputSchema: ZOD_STATUS, handler: async () => result({ status: "open" }) });
    defineOperation({ ...spec, handler: () => result({ anything: 1 }) });
    // @ts-expect-error "opened" is not one of them
    defineOperation({ ...spec, outputSchema: STATUS, handler: () => result({ status: "opened" }) });
    // @ts-expect-error the data is something else
    defineOperation({ ...spec, outputSchema: STATUS, handler: async () => result({ wrong: 1 }) });
  });

  it("RE-11 envelopes from elsewhere pass, whatever their data", () => {
    const other = {} as ResponseEnvelope<{ other: number }>;
    const unknown = {} as ResponseEnvelope;
    defineOperation({ ...spec, outputSchema: STATUS, handler: () => other });
    defineOperation({ ...spec, outputSchema: STATUS, handler: async () => unknown });
    defineOperation({ ...spec, outputSchema: STATUS, handler: () => toolError(null) });
    defineOperation({ ...spec, outputSchema: STATUS, handler: () => withData(other, { status: "open" }) });
    defineOperation({
      ...spec,
      outputSchema: STATUS,
      handler: (_, { execute }) => execute("types.unknown", 5),
    });
  });
});

describe("execute", () => {
  it("RE-10 types input and result by the operation", () => {
    const result = registry.execute(typebox, { title: "x" });
    expectTypeOf(result).toEqualTypeOf<Promise<ResponseEnvelope<{ id: string }>>>();
    expectTypeOf(registry.execute(zod, { n: "7" }))
      .resolves.toHaveProperty("data")
      .toEqualTypeOf<{ n: number; unit: string }>();
    // @ts-expect-error the title is missing
    registry.execute(typebox, {});
    // @ts-expect-error the input is missing
    registry.execute(typebox);
    registry.execute(bare);
  });

  it("RE-10 types an id that the map knows, and takes any other", () => {
    expectTypeOf(registry.execute("types.known", { id: "x" }))
      .resolves.toHaveProperty("data")
      .toEqualTypeOf<{ name: string }>();
    expectTypeOf(registry.execute("later.unknown", 5))
      .resolves.toHaveProperty("data")
      .toEqualTypeOf<unknown>();
    registry.execute("types.deep/er.name");
    // @ts-expect-error the id must be a string
    registry.execute("types.known", { id: 5 });
    const id: string = "types.known";
    registry.execute(id, 5);
  });

  it("RE-10 types an id of the operations that the registry was made with", () => {
    expectTypeOf(registry.execute("types.typebox", { title: "x" })).toEqualTypeOf<
      Promise<ResponseEnvelope<{ id: string }>>
    >();
    expectTypeOf(registry.execute("types.zod", { n: "7" }, { timeoutMs: 5 }))
      .resolves.toHaveProperty("data")
      .toEqualTypeOf<{ n: number; unit: string }>();
    registry.execute("types.bare");
    assertType<AsyncIterable<ResponseEnvelope<number>>>(registry.subscribe("types.ticks", { from: 1 }));
    // @ts-expect-error the title is missing
    registry.execute("types.typebox", {});
    // @ts-expect-error the input is missing
    registry.execute("types.typebox");
    // @ts-expect-error the namespace has no such operation
    registry.execute("types.typbox", { title: "x" });
    // @ts-expect-error nor one that streams
    registry.subscribe("types.tick", { from: 1 });
    // @ts-expect-error there is no such option
    registry.execute("types.bare", {}, { timeout: 5 });
  });

  it("RE-10 takes ids of other namespaces, and ids that are known at run time alone", () => {
    expectTypeOf(registry.execute("github.repos/get", { owner: "a" })).toEqualTypeOf<
      Promise<ResponseEnvelope<unknown>>
    >();
    const text: string = "types.typbox";
    expectTypeOf(registry.execute(text, 5)).toEqualTypeOf<Promise<ResponseEnvelope<unknown>>>();
    const pattern = "types.x" as `types.${string}`;
    registry.execute(pattern, 5);
    const other = defineOperation({ ...base, name: "other", outputSchema: Type.Number(), handler: () => 5 });
    expectTypeOf(registry.execute(other)).toEqualTypeOf<Promise<ResponseEnvelope<number>>>();
    for (const untyped of [new OperationRegistry(), {} as OperationRegistry]) {
      expectTypeOf(untyped.execute("types.anything", 5)).toEqualTypeOf<Promise<ResponseEnvelope<unknown>>>();
    }
    new OperationRegistry([]).execute("types.anything", 5);
  });

  it("RE-10 takes options last, an identity only from outside", () => {
    registry.execute(bare, {}, { identity: { subject: "ada" }, timeoutMs: 5 });
    const { execute } = {} as OperationContext;
    execute(typebox, { title: "x" }, { timeoutMs: 5 });
    // @ts-expect-error nested calls run as the caller
    execute(typebox, { title: "x" }, { identity: { subject: "ada" } });
  });
});

describe("subscribe, env and client", () => {
  it("RE-14 types the values of a subscription", () => {
    const stream = registry.subscribe(ticks, { from: 1 });
    assertType<AsyncIterable<ResponseEnvelope<number>>>(stream);
    // @ts-expect-error from is missing
    registry.subscribe(ticks, {});
  });

  it("RE-15 types the map by the operations the registry was made with", () => {
    const env = registry.buildEnv();
    expectTypeOf(env.types.typebox({ title: "x" })).toEqualTypeOf<
      Promise<ResponseEnvelope<{ id: string }>>
    >();
    // @ts-expect-error the title is missing
    env.types.typebox({});
    // @ts-expect-error there is no such operation
    env.types.none;
  });

  it("RE-15 types a map of some namespaces by those alone", () => {
    const env = registry.buildEnv({}, { namespaces: ["types", "later"] });
    expectTypeOf(env.types.typebox({ title: "x" })).toEqualTypeOf<
      Promise<ResponseEnvelope<{ id: string }>>
    >();
    expectTypeOf<keyof typeof env>().toEqualTypeOf<"types">();
    const names: string[] = ["types"];
    expectTypeOf(registry.buildEnv({}, { namespaces: names })).toEqualTypeOf(registry.buildEnv());
    // @ts-expect-error the filter comes second
    registry.buildEnv({ namespaces: ["types"] });
  });

  it("RE-15 types the map of a context by the map of known operations", () => {
    const { env } = {} as OperationContext;
    expectTypeOf(env.types.known({ id: "x" })).toEqualTypeOf<Promise<ResponseEnvelope<{ name: string }>>>();
    expectTypeOf(env.types["deep/er.name"]()).toEqualTypeOf<Promise<ResponseEnvelope<number>>>();
    // @ts-expect-error the id must be a string
    env.types.known({ id: 5 });
    assertType<((input?: unknown) => Promise<ResponseEnvelope>) | undefined>(env["other"]?.["operation"]);
    assertType<((input?: unknown) => Promise<ResponseEnvelope>) | undefined>(env.types["other"]);
  });

  it("RE-27 types the client by the operation, for every executor", () => {
    const client = createClient(registry);
    expectTypeOf(client.call(typebox, { title: "x" })).toEqualTypeOf<Promise<{ id: string }>>();
    expectTypeOf(client.pages(literal, { title: "x" })).toEqualTypeOf<AsyncIterable<number[]>>();
    expectTypeOf(client.subscribe(ticks, { from: 1 })).toEqualTypeOf<AsyncIterable<number>>();
    // @ts-expect-error the title must be a string
    client.call(typebox, { title: 5 });
    expectTypeOf(client.call("types.typebox", { title: "x" })).toEqualTypeOf<Promise<{ id: string }>>();
    expectTypeOf(client.pages("types.literal", { title: "x" })).toEqualTypeOf<AsyncIterable<number[]>>();
    expectTypeOf(client.subscribe("types.ticks", { from: 1 })).toEqualTypeOf<AsyncIterable<number>>();
    expectTypeOf(client.call("later.anything", 5)).toEqualTypeOf<Promise<unknown>>();
    // @ts-expect-error the title must be a string
    client.call("types.typebox", { title: 5 });
    // @ts-expect-error the namespace has no such operation
    client.call("types.typbox", { title: "x" });
    // @ts-expect-error nor pages of it
    client.pages("types.typbox");
    expectTypeOf(client.start(typebox, { title: "x" })).resolves.toEqualTypeOf<TaskHandle<{ id: string }>>();
    expectTypeOf(client.start("types.typebox", { title: "x" }, { ttlMs: 5 })).resolves.toEqualTypeOf<
      TaskHandle<{ id: string }>
    >();
    expectTypeOf<TaskHandle<number>["result"]>().returns.resolves.toEqualTypeOf<number>();
    // @ts-expect-error the title must be a string
    client.start("types.typebox", { title: 5 });
    // @ts-expect-error whoever starts it may leave
    client.start(typebox, { title: "x" }, { signal: AbortSignal.abort() });
  });

  it("RE-27 has the operations of the registry as functions", () => {
    const client = createClient(registry, { timeoutMs: 5 });
    expectTypeOf(client.types.typebox({ title: "x" })).toEqualTypeOf<Promise<{ id: string }>>();
    expectTypeOf(client.types.bare()).toEqualTypeOf<Promise<unknown>>();
    expectTypeOf(client.types.ticks({ from: 1 }, { timeoutMs: 5 })).toEqualTypeOf<AsyncIterable<number>>();
    // @ts-expect-error the title is missing
    client.types.typebox({});
    // @ts-expect-error there is no such operation
    client.types.none;
    // @ts-expect-error nor such a namespace
    client.later;
    const clashing = new OperationRegistry([
      defineOperation({ namespace: "call", name: "x", handler: () => 1 }),
      defineOperation({ namespace: "then", name: "x", handler: () => 1 }),
      defineOperation({ namespace: "calls", name: "then", handler: () => 1 }),
    ]);
    const named = createClient(clashing);
    expectTypeOf<keyof typeof named>().toEqualTypeOf<"call" | "start" | "pages" | "subscribe" | "calls">();
    expectTypeOf<keyof typeof named.calls>().toEqualTypeOf<never>();
    expectTypeOf(named.call("then.x")).toEqualTypeOf<Promise<unknown>>();
    assertType<Client>(createClient({} as Executor));
    assertType<Client>(client);
    assertType<Executor>(registry);
  });

  it("RE-15 lets a typed registry stand in for any", () => {
    assertType<OperationRegistry>(registry);
    assertType<OperationRegistry>(new OperationRegistry());
  });

  it("RE-27 types a pager by the schemas", () => {
    defineOperation({
      ...base,
      name: "paged",
      inputSchema: Type.Object({ cursor: Type.Optional(Type.String()) }),
      outputSchema: Type.Object({ next: Type.Optional(Type.String()) }),
      pager: {
        next({ data }, input) {
          expectTypeOf(data.next).toEqualTypeOf<string | undefined>();
          expectTypeOf(input.cursor).toEqualTypeOf<string | undefined>();
          return data.next === undefined ? undefined : { cursor: data.next };
        },
      },
      handler: () => ({}),
    });
  });
});
