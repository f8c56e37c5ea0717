import fc from "fast-check";
import { Type } from "typebox";
import { describe, expect, it, vi } from "vitest";
import { query, rejection } from "../../../test/make-operation.ts";
import { CallError } from "../errors/errors.ts";
import type { AnyOperation } from "../operation/operation-types.ts";
import type { ChangeListener, OperationSource, RegistryChange } from "./executor.ts";
import { OperationRegistry } from "./registry.ts";

const ids = (operations: readonly AnyOperation[]) => operations.map(({ id }) => id);
const plain = (id: string) => query(id, () => id);

describe("register", () => {
  it("RE-10 makes an operation callable and findable", async () => {
    const operation = plain("a.b");
    const registry = new OperationRegistry();
    registry.register(operation);
    expect((await registry.execute("a.b")).data).toBe("a.b");
    expect([registry.get("a.b"), registry.has("a.b"), registry.size]).toEqual([operation, true, 1]);
    expect([registry.get("a.c"), registry.has("a.c")]).toEqual([undefined, false]);
  });

  it("RE-10 takes a spec without an id, and is not changed by what happens to it later", async () => {
    const spec = {
      namespace: "a",
      name: "b",
      version: "1.0.0",
      type: "query" as const,
      description: "",
      handler: (): unknown => "old",
    };
    const registry = new OperationRegistry();
    registry.register(spec);
    spec.handler = () => "new";
    expect(registry.get("a.b")).toMatchObject({ id: "a.b", name: "b" });
    expect((await registry.execute("a.b")).data).toBe("old");
  });

  it("RE-10 takes a duplicate for a mistake unless replacing is asked for", async () => {
    const registry = new OperationRegistry([plain("a.b")]);
    const other = query("a.b", () => "other");
    expect(() => registry.register(other)).toThrow(TypeError);
    expect(() => registry.register(other)).toThrow(
      'Operation "a.b" is registered already; pass { replace: true }',
    );
    expect((await registry.execute("a.b")).data).toBe("a.b");
    registry.register(other, { replace: true });
    expect((await registry.execute("a.b")).data).toBe("other");
    expect(registry.size).toBe(1);
  });

  it("RE-10 refuses what cannot be an operation", () => {
    const registry = new OperationRegistry();
    expect(() => registry.register(null as never)).toThrow(TypeError);
    expect(() => registry.register({ ...plain("a.b"), name: "no name" })).toThrow(
      /^The name of an operation/,
    );
    expect(() => registry.register({ ...plain("a.b"), id: "a.c" } as never)).toThrow(
      'Operation "a.b": its id says otherwise; make it with defineOperation().',
    );
    expect(() => registry.register(query("a.b", () => 1, { access: { scope: [] } as never }))).toThrow(
      'Operation "a.b": access has no "scope"',
    );
    expect(() => registry.register(query("a.b", () => 1, { authority: { scopes: "x" } as never }))).toThrow(
      TypeError,
    );
    expect(registry.size).toBe(0);
  });

  it("RE-32 vets schemas at registration, naming the operation, the field and the reason", () => {
    const registry = new OperationRegistry();
    const bad = query("a.b", () => 1, { inputSchema: { $ref: "https://example.org/x.json" } });
    expect(() => registry.register(bad)).toThrow('Operation "a.b": its inputSchema is refused. ');
    const tight = new OperationRegistry([], { limits: { subschemas: 2 } });
    const wide = query("a.b", () => 1, {
      outputSchema: Type.Object({ a: Type.String(), b: Type.String(), c: Type.String() }),
    });
    expect(() => tight.register(wide)).toThrow('Operation "a.b": its outputSchema is refused. ');
    expect(() => registry.register(wide)).not.toThrow();
  });

  it("RE-10 registers all or none", () => {
    const registry = new OperationRegistry([plain("a.a")]);
    const listener = vi.fn();
    registry.onChange(listener);
    const bad = query("a.bad", () => 1, { inputSchema: { type: "nonsense" } });
    expect(() => registry.registerAll([plain("a.b"), bad])).toThrow('"a.bad"');
    expect(() => registry.registerAll([plain("a.b"), plain("a.a")])).toThrow('"a.a"');
    expect(() => registry.registerAll([plain("a.b"), plain("a.b")], { replace: true })).toThrow('"a.b"');
    expect(ids(registry.operations)).toEqual(["a.a"]);
    expect(listener).not.toHaveBeenCalled();
    registry.registerAll(new Set([plain("a.b"), plain("a.a")]), { replace: true });
    expect(ids(registry.operations)).toEqual(["a.a", "a.b"]);
  });

  it("RE-10 gives names like __proto__ and constructor no meaning", async () => {
    const names = ["__proto__.__proto__", "constructor.prototype", "a.toString", "hasOwnProperty.call"];
    const registry = new OperationRegistry(names.map(plain));
    for (const id of names) expect((await registry.execute(id)).data).toBe(id);
    expect(ids(registry.list())).toEqual([...names].sort());
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

describe("remove", () => {
  it("RE-10 takes an operation out and lets calls under way finish", async () => {
    let answer: (value: string) => void = () => {};
    const slow = query(
      "a.slow",
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    );
    const registry = new OperationRegistry([slow]);
    const pending = registry.execute(slow);
    expect(registry.remove("a.slow")).toBe(true);
    expect(registry.remove("a.slow")).toBe(false);
    expect(await rejection(registry.execute(slow))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
    answer("done");
    expect((await pending).data).toBe("done");
    expect([registry.size, registry.list(), registry.operations]).toEqual([0, [], []]);
  });
});

describe("list", () => {
  it("RE-10 is sorted by id, whatever the order of registration", () => {
    const parts = fc.uniqueArray(
      fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,5}\.[A-Za-z0-9_][A-Za-z0-9_./-]{0,5}$/),
    );
    fc.assert(
      fc.property(parts, (names) => {
        const registry = new OperationRegistry(names.map(plain));
        expect(ids(registry.list())).toEqual([...names].sort());
      }),
    );
  });

  it("RE-10 is a snapshot of the caller's own", () => {
    const registry = new OperationRegistry([plain("a.b")]);
    const listed = registry.list();
    registry.register(plain("a.a"));
    registry.remove("a.b");
    expect(ids(listed)).toEqual(["a.b"]);
    listed.reverse().push(plain("c.d"));
    expect(ids(registry.list())).toEqual(["a.a"]);
  });

  it("RE-10 holds what the caller may call, while the owner sees everything", () => {
    const scoped = query("a.scoped", () => 1, { access: { scopes: { allOf: ["s"] } } });
    const internal = query("a.internal", () => 1, { visibility: "internal" });
    const registry = new OperationRegistry([plain("a.open"), scoped, internal]);
    expect(ids(registry.list())).toEqual(["a.open"]);
    expect(ids(registry.list({ identity: { subject: "ada" } }))).toEqual(["a.open"]);
    expect(ids(registry.list({ identity: { subject: "ada", scopes: ["s"] } }))).toEqual([
      "a.open",
      "a.scoped",
    ]);
    expect(ids(registry.operations)).toEqual(["a.internal", "a.open", "a.scoped"]);
    expect([registry.size, registry.get("a.internal")]).toEqual([3, internal]);
    expect(() => registry.list({ identity: {} as never })).toThrow(TypeError);
  });
});

describe("onChange", () => {
  it("RE-10 tells what was added, replaced and removed, what belongs together in one go", () => {
    const registry = new OperationRegistry([plain("a.a")]);
    const seen: (readonly RegistryChange[])[] = [];
    const stop = registry.onChange((changes) => seen.push(changes));
    const [a, b, c] = [plain("a.a"), plain("a.b"), plain("a.c")];
    registry.registerAll([a, b], { replace: true });
    registry.register(c);
    registry.remove("a.b");
    registry.remove("a.b");
    registry.registerAll([]);
    stop();
    stop();
    registry.remove("a.c");
    expect(seen).toEqual([
      [
        { type: "replaced", operation: a },
        { type: "added", operation: b },
      ],
      [{ type: "added", operation: c }],
      [{ type: "removed", operation: b }],
    ]);
  });

  it("RE-10 is not broken by a listener that throws, or leaves while it is told", () => {
    const onWarning = vi.fn();
    const registry = new OperationRegistry([], { onWarning });
    registry.onChange(() => {
      throw new Error("listener");
    });
    const stop = registry.onChange(() => stop());
    const last = vi.fn();
    registry.onChange(last);
    registry.register(plain("a.b"));
    expect(registry.has("a.b")).toBe(true);
    expect(last).toHaveBeenCalledTimes(1);
    expect(onWarning).toHaveBeenCalledWith(expect.objectContaining({ type: "listener-failed" }));
  });

  it("RE-10 tells a listener added twice twice, until it leaves", () => {
    const registry = new OperationRegistry();
    const listener = vi.fn();
    const stop = registry.onChange(listener);
    registry.onChange(listener);
    registry.register(plain("a.a"));
    expect(listener).toHaveBeenCalledTimes(2);
    stop();
    registry.register(plain("a.b"));
    expect(listener).toHaveBeenCalledTimes(3);
  });
});

describe("sources", () => {
  /** A source whose changes a test decides about. */
  function source(
    operations: AnyOperation[],
  ): Extract<OperationSource, { operations: unknown }> & { change: ChangeListener; listeners: number } {
    const listeners = new Set<ChangeListener>();
    return {
      operations,
      onChange(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      change: (changes) => {
        for (const listener of listeners) listener(changes);
      },
      get listeners() {
        return listeners.size;
      },
    };
  }

  it("RE-10 are followed until told to stop, their changes announced in one go", () => {
    const from = source([plain("s.a"), plain("s.b")]);
    const registry = new OperationRegistry();
    const stop = registry.registerAll(from);
    const seen = vi.fn();
    registry.onChange(seen);
    const [b, c] = [query("s.b", () => "new"), plain("s.c")];
    from.change([
      { type: "removed", operation: plain("s.a") },
      { type: "replaced", operation: b },
      { type: "added", operation: c },
    ]);
    expect(ids(registry.operations)).toEqual(["s.b", "s.c"]);
    expect(registry.get("s.b")).toBe(b);
    expect(seen.mock.calls).toEqual([
      [
        [
          { type: "removed", operation: expect.objectContaining({ id: "s.a" }) },
          { type: "replaced", operation: b },
          { type: "added", operation: c },
        ],
      ],
    ]);
    stop();
    expect(from.listeners).toBe(0);
    from.change([{ type: "removed", operation: b }]);
    expect(registry.has("s.b")).toBe(true);
  });

  it("RE-10 change what came from them and nothing else", () => {
    const onWarning = vi.fn();
    const own = query("own.op", () => "own");
    const registry = new OperationRegistry([own], { onWarning });
    const [from, other] = [source([plain("s.a")]), source([plain("o.a")])];
    registry.registerAll(from);
    registry.registerAll(other);
    const seen = vi.fn();
    registry.onChange(seen);
    from.change([
      { type: "replaced", operation: query("own.op", () => "stolen") },
      { type: "added", operation: query("o.a", () => "stolen") },
      { type: "removed", operation: own },
      { type: "removed", operation: plain("o.a") },
      { type: "removed", operation: plain("s.none") },
    ]);
    expect(registry.get("own.op")).toBe(own);
    expect(seen).not.toHaveBeenCalled();
    expect(ids(registry.operations)).toEqual(["o.a", "own.op", "s.a"]);
    expect(onWarning.mock.calls.map(([warning]) => [warning.type, warning.operationId])).toEqual([
      ["source-change-refused", "own.op"],
      ["source-change-refused", "o.a"],
    ]);
    expect(onWarning.mock.calls[0]?.[0].message).toContain("registered already, and not by this source");
  });

  it("RE-10 do not take the rest down with one operation that cannot be", () => {
    const onWarning = vi.fn();
    const registry = new OperationRegistry([], { onWarning });
    const from = source([]);
    registry.registerAll(from);
    const bad = query("s.bad", () => 1, { outputSchema: { type: "nonsense" } });
    from.change([
      { type: "added", operation: bad },
      { type: "added", operation: undefined as never },
      { type: "added", operation: plain("s.good") },
    ]);
    expect(ids(registry.operations)).toEqual(["s.good"]);
    expect(onWarning).toHaveBeenCalledTimes(2);
    const refused = { type: "source-change-refused", operationId: "s.bad" };
    expect(onWarning).toHaveBeenCalledWith(expect.objectContaining(refused));
  });

  it("RE-10 may be a plain list of operations, or another registry", async () => {
    const inner = new OperationRegistry([plain("i.a")]);
    const outer = new OperationRegistry();
    outer.registerAll(inner);
    outer.registerAll({ operations: [plain("l.a")] });
    inner.register(plain("i.b"));
    expect(ids(outer.operations)).toEqual(["i.a", "i.b", "l.a"]);
    expect((await outer.execute("i.b")).data).toBe("i.b");
    inner.remove("i.a");
    expect(ids(outer.operations)).toEqual(["i.b", "l.a"]);
  });

  it("RE-10 may be iterable themselves", () => {
    const { onChange = () => () => {}, change } = source([]);
    const from = {
      onChange,
      *[Symbol.iterator]() {
        yield plain("s.a");
      },
    };
    const registry = new OperationRegistry();
    registry.registerAll(from);
    change([{ type: "added", operation: plain("s.b") }]);
    expect(ids(registry.operations)).toEqual(["s.a", "s.b"]);
  });

  it("RE-10 register all or none, too", () => {
    const registry = new OperationRegistry([plain("s.a")]);
    const from = source([plain("s.b"), plain("s.a")]);
    expect(() => registry.registerAll(from)).toThrow('"s.a"');
    expect(registry.size).toBe(1);
    expect(from.listeners).toBe(0);
  });
});

describe("options", () => {
  it.each([
    { outputPolicy: "loud" },
    { defaultTimeoutMs: -1 },
    { defaultTimeoutMs: "5" },
    { limits: { callDepth: -1 } },
    { limits: { callDepth: 1.5 } },
  ])("RE-10 refuses %j", (options) => {
    const make = () => new OperationRegistry([], options as never);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(/^(outputPolicy|timeoutMs|limits\.callDepth) must be/);
  });

  it("RE-10 gives the same results with code generation turned off", async () => {
    const operation = query("a.b", () => ({ n: "7", extra: 1 }), {
      inputSchema: Type.Object({ a: Type.String() }),
      outputSchema: Type.Object({ n: Type.Integer() }),
    });
    for (const codegen of [true, false]) {
      const registry = new OperationRegistry([operation], { codegen });
      expect((await registry.execute(operation, { a: "x" })).data).toEqual({ n: 7 });
      expect(await rejection(registry.execute(operation, { a: 1 } as never))).toMatchObject({
        code: "VALIDATION_ERROR",
      });
    }
  });
});

describe("operations whose schemas are worked out when they are first needed", () => {
  const lazy = (schema: () => object) => {
    const read = vi.fn(schema);
    const spec = {
      ...query("lazy.one", (input) => input),
      get inputSchema() {
        return read();
      },
    };
    return {
      read,
      operation: Object.freeze(Object.defineProperties({}, Object.getOwnPropertyDescriptors(spec))),
    };
  };

  it("RE-10 costs nothing to register and list, and checks input from the first call on", async () => {
    const { read, operation } = lazy(() => ({ type: "object", required: ["n"] }));
    const registry = new OperationRegistry([operation as AnyOperation]);
    registry.list();
    expect(read).not.toHaveBeenCalled();
    expect(await rejection(registry.execute("lazy.one", {}))).toMatchObject({ code: "VALIDATION_ERROR" });
    expect((await registry.execute("lazy.one", { n: 1 })).data).toEqual({ n: 1 });
    expect(read).toHaveBeenCalledTimes(1);
  });

  it("RE-10 is a call error, each time, where the schema is refused; who may not call learns nothing of it", async () => {
    const { operation } = lazy(() => ({ $ref: "#/nowhere" }));
    const registry = new OperationRegistry([operation as AnyOperation]);
    for (let n = 0; n < 2; n++) {
      expect(await rejection(registry.execute("lazy.one", {}))).toMatchObject({
        code: "NOT_IMPLEMENTED",
        message: expect.stringContaining("its inputSchema is refused"),
      });
    }
    const { operation: closed, read } = lazy(() => ({}));
    const guarded = Object.freeze(
      Object.defineProperties(
        { access: { scopes: { allOf: ["x"] } } },
        Object.getOwnPropertyDescriptors(closed),
      ),
    );
    const other = new OperationRegistry([guarded as unknown as AnyOperation]);
    expect(await rejection(other.execute("lazy.one", {}))).toMatchObject({ code: "UNAUTHENTICATED" });
    expect(read).not.toHaveBeenCalled();
  });
});

describe("an operation that is not there", () => {
  const down = new CallError("UNAVAILABLE", "The source is down.");
  const hidden = { ...plain("secret.one"), visibility: "internal" as const };

  it("RE-12 fails with what the owner of the registry knows, in nested calls, subscriptions and hooks too", async () => {
    const outer = query("outer.one", (_, { execute }) => execute("gone.one"));
    const seen: unknown[] = [];
    const registry = new OperationRegistry([outer, hidden], {
      explainMissing: (id) => (id.startsWith("gone.") || id === "secret.one" ? down : undefined),
    });
    expect(await rejection(registry.execute("gone.one"))).toBe(down);
    registry.use((call, next) => {
      seen.push(call.refusal);
      return next();
    });
    expect(await rejection(registry.execute("gone.one"))).toBe(down);
    expect(seen).toEqual([down]);
    expect(await rejection(registry.execute("outer.one"))).toMatchObject({ code: "UNAVAILABLE" });
    expect(await rejection(registry.subscribe("gone.one")[Symbol.asyncIterator]().next())).toBe(down);
    expect(await rejection(registry.execute("other.one"))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
    expect(await rejection(registry.execute("secret.one"))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
  });
});
