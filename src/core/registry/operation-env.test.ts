import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { query, rejection, stream } from "../../../test/make-operation.ts";
import { defineOperation } from "../operation/operation.ts";
import type { OperationContext } from "../operation/operation-context.ts";
import { OperationRegistry } from "./registry.ts";

const code = (expected: string) => expect.objectContaining({ code: expected });

const add = defineOperation({
  namespace: "math",
  name: "add",
  version: "1.0.0",
  type: "query",
  description: "Adds two numbers.",
  inputSchema: Type.Object({ a: Type.Number(), b: Type.Number() }),
  outputSchema: Type.Number(),
  handler: ({ a, b }) => a + b,
});
const hidden = query("secret.hidden", () => "hidden", { visibility: "internal" });
const scoped = query("math.scoped", (_, { identity }) => identity?.subject, {
  access: { scopes: { allOf: ["s"] } },
});

type LooseEnv = Record<
  string,
  Record<string, (input?: unknown, options?: object) => Promise<{ data: unknown }>>
>;

/** The map as a handler finds it. */
async function envWithin<T>(
  use: (env: LooseEnv, context: OperationContext) => T | Promise<T>,
  extra = {},
  options = {},
) {
  const user = query("test.user", async (_, context) => [await use(context.env as LooseEnv, context)], extra);
  const registry = new OperationRegistry([add, hidden, scoped, user]);
  const { data } = await registry.execute(user, {}, options);
  return (data as [T])[0];
}

describe("buildEnv", () => {
  it("RE-15 gives the operations as functions that return envelopes", async () => {
    const env = new OperationRegistry([add]).buildEnv();
    const envelope = await env.math.add({ a: 1, b: 2 });
    expect(envelope).toMatchObject({ data: 3, meta: { source: "local", operationId: "math.add" } });
    expect(await rejection(env.math.add({ a: 1 } as never))).toEqual(code("VALIDATION_ERROR"));
  });

  it("RE-15 is a map without prototype: any name is a key, and nothing is there but operations", async () => {
    const names = ["__proto__.__proto__", "constructor.call", "then.then", "a.b/c.d"];
    const registry = new OperationRegistry(names.map((id) => query(id, () => id)));
    const env = registry.buildEnv() as unknown as LooseEnv;
    expect(Object.keys(env).sort()).toEqual(["__proto__", "a", "constructor", "then"]);
    expect(Object.getPrototypeOf(env)).toBeNull();
    for (const namespace of Object.keys(env)) {
      const members = Object.entries(Reflect.get(env, namespace) as LooseEnv[string]);
      for (const [name, call] of members) expect((await call()).data).toBe(`${namespace}.${name}`);
      expect(members).toHaveLength(1);
    }
    expect(env["toString"]).toBeUndefined();
    expect(env["a"]?.["toString"]).toBeUndefined();
    expect(Reflect.get(env, Symbol.toPrimitive)).toBeUndefined();
    expect(["a" in env, "b" in env, "b/c.d" in (env["a"] ?? {})]).toEqual([true, false, true]);
    expect(Object.getOwnPropertyDescriptor(env, "b")).toBeUndefined();
    expect(await Promise.resolve(env)).toBe(env);
  });

  it("RE-15 cannot be written to", () => {
    const env = new OperationRegistry([add]).buildEnv() as unknown as LooseEnv;
    const attempts = [
      () => Object.assign(env, { math: {} }),
      () => Object.assign(env["math"] ?? {}, { add: () => 1 }),
      () => Object.defineProperty(env, "x", { value: 1 }),
      () => Reflect.deleteProperty(env, "math") || Object.freeze(env),
      () => Object.setPrototypeOf(env, {}),
    ];
    for (const attempt of attempts) expect(attempt).toThrow(TypeError);
    expect(Object.keys(env)).toEqual(["math"]);
  });

  it("RE-15 follows the registry", async () => {
    const registry = new OperationRegistry([query("a.b", () => 1)]);
    const env = registry.buildEnv() as unknown as LooseEnv;
    registry.register(query("c.d", () => 2));
    expect((await env["c"]?.["d"]?.())?.data).toBe(2);
    registry.register(query("c.e", () => 3));
    registry.remove("c.e");
    expect((await env["c"]?.["d"]?.())?.data).toBe(2);
    registry.remove("a.b");
    expect(Object.keys(env)).toEqual(["c"]);
    expect(env["a"]).toBeUndefined();
  });

  it("RE-15 sends a subscription to subscribe()", async () => {
    const env = new OperationRegistry([
      stream("a.s", async function* () {}),
    ]).buildEnv() as unknown as LooseEnv;
    expect(await rejection(env["a"]?.["s"]?.() as never)).toMatchObject({
      message: expect.stringContaining("subscribe()"),
    });
  });

  it("RE-15 hides internal operations from outside, as if they were not there", () => {
    const env = new OperationRegistry([add, hidden]).buildEnv() as unknown as LooseEnv;
    expect(Object.keys(env)).toEqual(["math"]);
    expect([env["secret"], "secret" in env]).toEqual([undefined, false]);
    const mixed = new OperationRegistry([
      hidden,
      query("secret.open", () => 1),
    ]).buildEnv() as unknown as LooseEnv;
    expect(Object.keys(mixed["secret"] ?? {})).toEqual(["open"]);
    expect(mixed["secret"]?.["hidden"]).toBeUndefined();
  });

  it("RE-15 calls from outside with the options it was built with, identity above all", async () => {
    const registry = new OperationRegistry([add, scoped]);
    const ada = { subject: "ada", scopes: ["s"] };
    const env = registry.buildEnv({ identity: ada }) as unknown as LooseEnv;
    ada.scopes.length = 0;
    expect((await env["math"]?.["scoped"]?.())?.data).toBe("ada");
    const eve = { identity: { subject: "eve", scopes: ["s"] } };
    expect((await env["math"]?.["scoped"]?.({}, eve))?.data).toBe("ada");
    expect(Object.keys(env["math"] ?? {})).toEqual(["add", "scoped"]);
    const closed = new OperationRegistry([scoped]).buildEnv() as unknown as LooseEnv;
    expect([Object.keys(closed), "math" in closed]).toEqual([[], true]);
    const anonymous = registry.buildEnv() as unknown as LooseEnv;
    expect(Object.keys(anonymous["math"] ?? {})).toEqual(["add"]);
    expect(await rejection(anonymous["math"]?.["scoped"]?.() as never)).toEqual(code("UNAUTHENTICATED"));
    const late = registry.buildEnv({ signal: AbortSignal.abort() }) as unknown as LooseEnv;
    expect(await rejection(late["math"]?.["add"]?.({ a: 1, b: 2 }) as never)).toEqual(code("ABORTED"));
  });
});

describe("buildEnv for some namespaces", () => {
  const operations = [
    add,
    query("note.read", () => "read"),
    query("note.list", () => "list"),
    hidden,
  ] as const;

  it("RE-15 holds those namespaces, and is told of nothing else", async () => {
    const registry = new OperationRegistry(operations);
    const env = registry.buildEnv({}, { namespaces: ["math"] }) as unknown as LooseEnv;
    expect((await env["math"]?.["add"]?.({ a: 1, b: 2 }))?.data).toBe(3);
    expect([Object.keys(env), "note" in env, env["note"]]).toEqual([["math"], false, undefined]);
    expect(Object.keys(registry.buildEnv({}, { namespaces: [] }))).toEqual([]);
    expect(Object.keys(registry.buildEnv({}, {})).sort()).toEqual(["math", "note"]);
    expect(Object.keys(registry.buildEnv({}, { namespaces: undefined })).sort()).toEqual(["math", "note"]);
    // An internal operation stays one.
    expect(Object.keys(registry.buildEnv({}, { namespaces: ["secret", "__proto__"] }))).toEqual([]);
  });

  it("RE-15 follows the registry within them", async () => {
    const registry = new OperationRegistry([add]);
    const env = registry.buildEnv(undefined, { namespaces: ["late"] }) as unknown as LooseEnv;
    registry.registerAll([query("late.one", () => 1), query("other.two", () => 2)]);
    expect(Object.keys(env)).toEqual(["late"]);
    expect((await env["late"]?.["one"]?.())?.data).toBe(1);
  });

  it("RE-15 holds within a handler too, where internal operations are", async () => {
    const user = query("test.user", (_, context) =>
      Object.keys(registry.buildEnv(context, { namespaces: ["secret"] })),
    );
    const registry = new OperationRegistry([...operations, user]);
    expect((await registry.execute("test.user", {})).data).toEqual(["secret"]);
  });

  it.each([
    ["the first argument", () => [{ namespaces: ["math"] }], "second argument"],
    ["an option of a call that there is not", () => [{ timeout: 5 }], 'did you mean "timeoutMs"?'],
    ["another name", () => [{}, { namespace: ["math"] }], 'did you mean "namespaces"?'],
    ["a text", () => [{}, { namespaces: "math" }], "namespaces must be a list of texts"],
    ["a list of something else", () => [{}, { namespaces: [1] }], "namespaces must be a list of texts"],
    ["no options", () => [{}, ["math"]], "The options must be an object"],
  ])("RE-15 refuses a filter that it would ignore: %s", (_, given, message) => {
    const registry = new OperationRegistry(operations);
    const build = registry.buildEnv.bind(registry) as (...given: readonly unknown[]) => unknown;
    expect(() => build(...given())).toThrow(TypeError);
    expect(() => build(...given())).toThrow(message);
  });
});

describe("context.env", () => {
  it("RE-15 holds every operation for a handler, internal ones included, and lists what its caller may call", async () => {
    expect(await envWithin((env) => Object.keys(env).sort())).toEqual(["math", "secret", "test"]);
    expect(await envWithin((env) => Object.keys(env["math"] ?? {}))).toEqual(["add"]);
    expect(await envWithin(async (env) => (await env["secret"]?.["hidden"]?.())?.data)).toBe("hidden");
    const identity = { subject: "ada", scopes: ["s"] };
    expect(await envWithin((env) => Object.keys(env["math"] ?? {}), {}, { identity })).toEqual([
      "add",
      "scoped",
    ]);
  });

  it("RE-15 calls on behalf of the caller, with access rules applied", async () => {
    const call = (env: LooseEnv) => env["math"]?.["scoped"]?.() as Promise<{ data: unknown }>;
    expect(await envWithin((env) => rejection(call(env)))).toEqual(code("UNAUTHENTICATED"));
    const eve = { identity: { subject: "eve" } };
    expect(await envWithin((env) => rejection(call(env)), {}, eve)).toEqual(code("ACCESS_DENIED"));
    const ada = { identity: { subject: "ada", scopes: ["s"] } };
    expect(await envWithin(async (env) => (await call(env)).data, {}, ada)).toBe("ada");
  });

  it("RE-15 calls with the operation's own authority where it declares one", async () => {
    const extra = { authority: { scopes: ["s"] } };
    const found = await envWithin(
      async (env) => [(await env["math"]?.["scoped"]?.())?.data, Object.keys(env["math"] ?? {})],
      extra,
    );
    expect(found).toEqual(["test.user", ["add", "scoped"]]);
  });

  it("RE-15 is not built for a call of another registry, whose authority means nothing here", async () => {
    const other = new OperationRegistry([hidden]);
    await envWithin(async (_, context) => {
      expect(() => other.buildEnv(context)).toThrow("belongs to a call of another registry");
    }, {});
  });
});
