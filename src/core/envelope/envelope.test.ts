import { Type } from "typebox";
import { afterEach, describe, expect, it, vi } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { OperationRegistry } from "../registry/registry.ts";
import {
  adoptEnvelope,
  httpEnvelope,
  isErrorEnvelope,
  isMarkedEnvelope,
  isResponseEnvelope,
  localEnvelope,
  mcpEnvelope,
  outcomeOf,
  RESPONSE_SOURCES,
  type ResponseEnvelope,
  type ResponseMeta,
  rawData,
  toolError,
  unwrap,
  withData,
  withFacts,
  withOperationId,
} from "./envelope.ts";

const HTTP = {
  statusCode: 200,
  headers: { "content-type": "text/plain" },
  contentType: "text/plain",
} as const;
const MCP = { isError: false, content: [{ type: "text", text: "Done" }] } as const;

/** The same object, frozen all the way down: a factory or copy that mutates it throws. */
function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(frozen);
  return value;
}

afterEach(() => {
  vi.useRealTimers();
});

describe("localEnvelope", () => {
  it("RE-2 carries the operation id and the moment it was wrapped", () => {
    vi.useFakeTimers({ now: 1_700_000_000_123 });
    const data = { id: "7" };
    const envelope = localEnvelope(data, "task.create");
    expect(envelope).toStrictEqual({
      data: { id: "7" },
      meta: { source: "local", operationId: "task.create", timestamp: 1_700_000_000_123 },
    });
    expect(envelope.data).toBe(data);
  });

  it("RE-6 wraps undefined, with data still a key of the envelope", () => {
    const envelope = localEnvelope(undefined, "task.remove");
    expect(Object.keys(envelope)).toEqual(["data", "meta"]);
    expect(envelope.data).toBeUndefined();
    expect(isResponseEnvelope(envelope)).toBe(true);
  });

  it("RE-1 makes plain objects that show nothing but data and meta", () => {
    const envelope = localEnvelope(1, "a.b");
    expect(Object.getPrototypeOf(envelope)).toBe(Object.prototype);
    expect(Reflect.ownKeys(envelope)).toEqual(["data", "meta"]);
    expect(Reflect.ownKeys(envelope.meta)).toEqual(["source", "operationId", "timestamp"]);
  });

  it("RE-1 names the three sources", () => {
    expect(RESPONSE_SOURCES).toEqual(["local", "http", "mcp"]);
  });
});

describe("httpEnvelope", () => {
  it("RE-3 carries status, headers and content type, and nothing that was not given", () => {
    expect(httpEnvelope("hi", frozen({ ...HTTP }))).toStrictEqual({
      data: "hi",
      meta: { source: "http", ...HTTP },
    });
  });

  it.each([null, undefined, ""])("RE-3 says an empty content type for %j", (contentType) => {
    const { meta } = httpEnvelope("", { ...HTTP, contentType });
    expect(meta).toHaveProperty("contentType", "");
  });

  it("RE-3 says an empty content type when the header is not there", () => {
    const { meta } = httpEnvelope("", { statusCode: 204, headers: {} });
    expect(meta).toStrictEqual({ source: "http", statusCode: 204, headers: {}, contentType: "" });
  });

  it("RE-3 keeps cookies apart, and facts", () => {
    const setCookie = ["a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "b=2"];
    const { meta } = httpEnvelope("", frozen({ ...HTTP, setCookie, waybill: { attempts: 2 } }));
    expect(meta).toStrictEqual({ source: "http", ...HTTP, setCookie, waybill: { attempts: 2 } });
  });

  it("RE-3 keeps isError only when it is true", () => {
    expect(httpEnvelope("", { ...HTTP, isError: true }).meta).toHaveProperty("isError", true);
    expect(httpEnvelope("", { ...HTTP, isError: false }).meta).not.toHaveProperty("isError");
    expect(httpEnvelope("", { ...HTTP, isError: undefined }).meta).not.toHaveProperty("isError");
  });

  it("RE-3 leaves undefined fields and fields it does not know out", () => {
    const given = { ...HTTP, setCookie: undefined, waybill: undefined, operationId: "x", constructor: 1 };
    expect(httpEnvelope("", given).meta).toStrictEqual({ source: "http", ...HTTP });
  });
});

describe("mcpEnvelope", () => {
  it("RE-4 carries isError and the full content, and nothing that was not given", () => {
    expect(mcpEnvelope("Done", frozen({ ...MCP }))).toStrictEqual({
      data: "Done",
      meta: { source: "mcp", isError: false, content: [{ type: "text", text: "Done" }] },
    });
  });

  it.each([null, 0, false, "", [], {}])("RE-4 keeps the structured content %j, which is present", (value) => {
    const { meta } = mcpEnvelope(value, { ...MCP, structuredContent: value });
    expect(meta).toStrictEqual({ source: "mcp", ...MCP, structuredContent: value });
  });

  it("RE-4 keeps _meta and facts", () => {
    const given = frozen({ ...MCP, isError: true, _meta: { "a/b": 1 }, waybill: { durationMs: 3 } });
    expect(mcpEnvelope("", given).meta).toStrictEqual({ source: "mcp", ...given });
  });

  it("RE-4 leaves undefined fields and fields it does not know out", () => {
    const given = {
      ...MCP,
      structuredContent: undefined,
      _meta: undefined,
      waybill: undefined,
      statusCode: 1,
    };
    expect(mcpEnvelope("", given).meta).toStrictEqual({ source: "mcp", ...MCP });
  });

  it("RE-4 always says a boolean for isError", () => {
    const { content } = MCP;
    const nothing = { content } as unknown as typeof MCP;
    const truthy = { content, isError: "yes" } as unknown as typeof MCP;
    expect(mcpEnvelope("", nothing).meta.isError).toBe(false);
    expect(mcpEnvelope("", truthy).meta.isError).toBe(false);
  });
});

describe("a source smuggled into the argument", () => {
  const own = { source: "local" };
  const getter = Object.defineProperty({}, "source", { get: () => "local", enumerable: true });
  const inherited = Object.create({ source: "local", operationId: "a.b", timestamp: 1 });

  it.each([
    ["an own property", own],
    ["a getter", getter],
    ["a prototype", inherited],
  ])("RE-6 cannot win as %s", (_, smuggler) => {
    expect(httpEnvelope(1, Object.assign(smuggler, HTTP)).meta.source).toBe("http");
    expect(mcpEnvelope(1, Object.assign(smuggler, MCP)).meta.source).toBe("mcp");
  });

  it("RE-6 takes no optional field from a prototype", () => {
    const loaded = {
      isError: true,
      setCookie: ["a=1"],
      structuredContent: 1,
      _meta: {},
      waybill: { attempts: 9 },
    };
    const http = Object.assign(Object.create(loaded), HTTP);
    expect(httpEnvelope(1, http).meta).toStrictEqual({ source: "http", ...HTTP });
    const mcp = Object.assign(Object.create(loaded), { content: [] });
    expect(mcpEnvelope(1, mcp).meta).toStrictEqual({ source: "mcp", isError: false, content: [] });
  });

  it("RE-6 pollutes nothing through __proto__", () => {
    const given = Object.assign(JSON.parse('{"__proto__": {"isError": true}}'), HTTP);
    const { meta } = httpEnvelope(1, given);
    expect(Object.getPrototypeOf(meta)).toBe(Object.prototype);
    expect(meta.isError).toBeUndefined();
  });
});

describe("toolError", () => {
  it("RE-11 says that it ran and said no, with a code for programs", () => {
    vi.useFakeTimers({ now: 5 });
    expect(toolError({ reason: "out of stock" }, { code: "OUT_OF_STOCK" })).toStrictEqual({
      data: { reason: "out of stock" },
      meta: {
        source: "local",
        operationId: "",
        timestamp: 5,
        isError: true,
        waybill: { code: "OUT_OF_STOCK" },
      },
    });
  });

  it("RE-11 needs nothing but data", () => {
    vi.useFakeTimers({ now: 5 });
    expect(toolError("no").meta).toStrictEqual({
      source: "local",
      operationId: "",
      timestamp: 5,
      isError: true,
    });
  });

  it("RE-11 carries message, details and operation id when told", () => {
    const { meta } = toolError(null, {
      message: "None left.",
      details: { left: 0n },
      operationId: "shop.buy",
    });
    expect(meta).toMatchObject({
      operationId: "shop.buy",
      waybill: { message: "None left.", details: { left: "0" } },
    });
    expect(meta.waybill).not.toHaveProperty("code");
  });

  it("RE-11 drops undefined options", () => {
    expect(toolError(1, { code: undefined, message: undefined, details: undefined }).meta).not.toHaveProperty(
      "waybill",
    );
  });

  it("RE-11 detaches details from what it was given", () => {
    const details = { left: [1] };
    const { meta } = toolError(1, { details });
    details.left.push(2);
    expect(meta.waybill?.details).toEqual({ left: [1] });
  });

  it("RE-11 is an envelope of ours", () => {
    expect(isMarkedEnvelope(toolError(1))).toBe(true);
    expect(isResponseEnvelope(toolError(1, { code: "X", message: "x", details: [] }))).toBe(true);
  });
});

describe("reading an envelope", () => {
  it("RE-8 unwraps to the very data", () => {
    const data = { a: 1 };
    expect(unwrap(localEnvelope(data, "a.b"))).toBe(data);
    expect(unwrap(localEnvelope(undefined, "a.b"))).toBeUndefined();
  });

  it.each([
    ["ok", localEnvelope(1, "a.b")],
    ["tool_error", toolError(1)],
    ["ok", httpEnvelope(1, HTTP)],
    ["tool_error", httpEnvelope(1, { ...HTTP, isError: true })],
    ["ok", mcpEnvelope(1, MCP)],
    ["tool_error", mcpEnvelope(1, { ...MCP, isError: true })],
  ] as const)("RE-1 tells the outcome %s", (outcome, envelope) => {
    expect(outcomeOf(envelope)).toBe(outcome);
    expect(isErrorEnvelope(envelope)).toBe(outcome === "tool_error");
  });
});

describe("the mark", () => {
  it("RE-6 is on what the factories make", () => {
    for (const envelope of [
      localEnvelope(1, "a.b"),
      httpEnvelope(1, HTTP),
      mcpEnvelope(1, MCP),
      toolError(1),
    ]) {
      expect(isMarkedEnvelope(envelope)).toBe(true);
    }
  });

  it("RE-6 is not on what merely looks the same, copies included", () => {
    const envelope = localEnvelope(1, "a.b");
    const lookalikes = [
      { ...envelope },
      structuredClone(envelope),
      JSON.parse(JSON.stringify(envelope)),
      Object.create(envelope),
      new Proxy(envelope, {}),
    ];
    for (const value of lookalikes) expect(isMarkedEnvelope(value)).toBe(false);
  });

  it.each([undefined, null, 1, "text", true, Symbol("x"), () => undefined, []])(
    "RE-6 is not on %o, and looking does not throw",
    (value) => {
      expect(isMarkedEnvelope(value)).toBe(false);
    },
  );

  it("RE-6 is not fooled by proxies, revoked or throwing", () => {
    const { proxy, revoke } = Proxy.revocable(localEnvelope(1, "a.b"), {});
    revoke();
    expect(isMarkedEnvelope(proxy)).toBe(false);
  });

  it("RE-11 stays on a frozen envelope", () => {
    expect(isMarkedEnvelope(frozen(localEnvelope({ a: 1 }, "a.b")))).toBe(true);
  });
});

describe("withFacts", () => {
  it("RE-11 adds facts in a marked copy and leaves a frozen original alone", () => {
    const data = { a: 1 };
    const original = frozen(mcpEnvelope(data, { ...MCP }));
    const copy = withFacts(original, { durationMs: 4 });
    expect(copy).toStrictEqual({ data, meta: { source: "mcp", ...MCP, waybill: { durationMs: 4 } } });
    expect(copy.data).toBe(data);
    expect(isMarkedEnvelope(copy)).toBe(true);
    expect(original.meta).not.toHaveProperty("waybill");
  });

  it("RE-11 merges into the facts already there, the newer winning", () => {
    const first = frozen(withFacts(localEnvelope(1, "a.b"), { durationMs: 1, attempts: 2 }));
    expect(withFacts(first, { durationMs: 9, cursor: "c" }).meta.waybill).toStrictEqual({
      durationMs: 9,
      attempts: 2,
      cursor: "c",
    });
    expect(first.meta.waybill).toStrictEqual({ durationMs: 1, attempts: 2 });
  });

  it("RE-11 shares no facts object with its caller", () => {
    const facts = { durationMs: 1 };
    const envelope = withFacts(localEnvelope(1, "a.b"), facts);
    facts.durationMs = 2;
    expect(envelope.meta.waybill).toStrictEqual({ durationMs: 1 });
  });

  it("RE-11 adds no empty facts", () => {
    const { meta } = withFacts(localEnvelope(1, "a.b"), {});
    expect(meta).not.toHaveProperty("waybill");
  });

  it("RE-11 replaces the data and remembers what it was", () => {
    const raw = { a: "1", excess: true };
    const copy = withFacts<unknown>(frozen(localEnvelope(raw, "a.b")), { attempts: 1 }, { a: 1 });
    expect(copy.data).toEqual({ a: 1 });
    expect(rawData(copy)).toBe(raw);
  });

  it.each([null, 0, false, ""])("RE-11 takes %j for data that was given", (data) => {
    const copy = withFacts<unknown>(localEnvelope("raw", "a.b"), {}, data);
    expect(copy.data).toBe(data);
    expect(rawData(copy)).toBe("raw");
  });

  it("RE-11 remembers even undefined", () => {
    expect(rawData(withFacts<unknown>(localEnvelope(undefined, "a.b"), {}, 1))).toBeUndefined();
  });

  it("RE-11 keeps the first raw value through later copies", () => {
    const once = withFacts<unknown>(localEnvelope("first", "a.b"), {}, "second");
    expect(rawData(withFacts(once, { attempts: 1 }))).toBe("first");
    expect(rawData(withFacts(once, {}, "third"))).toBe("first");
    expect(withFacts(once, {}, "third").data).toBe("third");
  });

  it("RE-11 works on an envelope that is not ours", () => {
    const literal: ResponseEnvelope = {
      data: 1,
      meta: { source: "local", operationId: "a.b", timestamp: 1 },
    };
    const copy = withFacts(literal, { attempts: 1 }, 2);
    expect(isMarkedEnvelope(copy)).toBe(true);
    expect(rawData(copy)).toBe(1);
    expect(rawData(literal)).toBe(1);
  });

  it("RE-11 gives the data itself as raw when nothing replaced it", () => {
    const data = {};
    expect(rawData(localEnvelope(data, "a.b"))).toBe(data);
    expect(rawData(withFacts(localEnvelope(data, "a.b"), { attempts: 1 }))).toBe(data);
  });
});

describe("withOperationId", () => {
  it("RE-2 names the operation of an envelope that does not say", () => {
    const original = frozen(toolError("no", { code: "X" }));
    const named = withOperationId(original, "shop.buy");
    expect(named).toStrictEqual({ data: "no", meta: { ...original.meta, operationId: "shop.buy" } });
    expect(isMarkedEnvelope(named)).toBe(true);
  });

  it("RE-2 keeps the raw value", () => {
    const replaced = withFacts<unknown>(toolError("raw"), {}, "other");
    expect(rawData(withOperationId(replaced, "a.b"))).toBe("raw");
  });

  it("RE-11 gives every other envelope back as it is", () => {
    const others = [toolError(1, { operationId: "a.b" }), httpEnvelope(1, HTTP), mcpEnvelope(1, MCP)];
    for (const envelope of others) expect(withOperationId(envelope, "x.y")).toBe(envelope);
    const odd = { data: 1, meta: { source: "http" as const, ...HTTP, operationId: "" } };
    expect(withOperationId(odd, "x.y")).toBe(odd);
  });
});

describe("withData", () => {
  it("RE-11 gives other data in a marked copy, whose raw data it is", () => {
    const [local, http] = [frozen(localEnvelope({ n: 1 }, "a.b")), frozen(httpEnvelope({ n: 1 }, HTTP))];
    for (const envelope of [local, http]) {
      const changed = withData(envelope, { n: 2 });
      expect(changed).toStrictEqual({ data: { n: 2 }, meta: envelope.meta });
      expect([isMarkedEnvelope(changed), rawData(changed)]).toEqual([true, { n: 2 }]);
    }
    expect(withData(toolError("no", { code: "X" }), undefined)).toMatchObject({
      data: undefined,
      meta: { isError: true, waybill: { code: "X" } },
    });
  });

  it("RE-11 leaves out what was found out about the old data", () => {
    const facts = {
      attempts: 2,
      page: { next: "c2" },
      obtained: "body",
      violations: [],
      said: { summary: "One.", content: [{ type: "text", text: "# One" }] },
    } as const;
    const checked = withFacts<unknown>(httpEnvelope(1, HTTP), facts, 2);
    expect(withData(checked, 3).meta.waybill).toStrictEqual({
      attempts: 2,
      page: { next: "c2" },
      said: { summary: "One." },
    });
    const bare = withFacts(httpEnvelope(1, HTTP), { obtained: "body", said: { content: [] } });
    expect(withData(bare, 3).meta).toStrictEqual(httpEnvelope(1, HTTP).meta);
  });

  it("RE-4 says new data of an MCP result as its content and structured content", () => {
    const _meta = { "x.example/trace": "t" };
    const envelope = frozen(
      mcpEnvelope({ n: 1 }, { ...MCP, isError: true, structuredContent: { n: 1 }, _meta }),
    );
    expect(withData(envelope, { n: 2 })).toStrictEqual({
      data: { n: 2 },
      meta: {
        source: "mcp",
        isError: true,
        content: [{ type: "text", text: '{"n":2}' }],
        structuredContent: { n: 2 },
        _meta,
      },
    });
    expect(withData(envelope, "two").meta).toMatchObject({ content: [{ type: "text", text: "two" }] });
    expect(withData(envelope, []).meta).toMatchObject({ structuredContent: [] });
    const nothing = withData(envelope, undefined).meta;
    expect([nothing, Object.hasOwn(nothing, "structuredContent")]).toMatchObject([{ content: [] }, false]);
    expect(withData(envelope, 1n).meta).toMatchObject({ content: [], structuredContent: 1n });
  });

  it("RE-4 takes blocks in the place of content that was the data for its content", () => {
    const image = { type: "image", data: "", mimeType: "image/png" } as const;
    const content = [...MCP.content, image];
    const envelope = mcpEnvelope(content, { isError: false, content });
    expect(withData(envelope, [image])).toStrictEqual(
      mcpEnvelope([image], { isError: false, content: [image] }),
    );
    expect(withData(envelope, [1]).meta).toMatchObject({ structuredContent: [1] });
    const recovered = mcpEnvelope<unknown>({ n: 1 }, { isError: false, content });
    expect(withData(recovered, [image]).meta).toMatchObject({ structuredContent: [image] });
  });

  it("RE-11 passes through where a handler returns it, and is checked as its own data", async () => {
    const inner = query("a.inner", () => mcpEnvelope({ n: "1" }, { ...MCP, structuredContent: { n: "1" } }));
    const outer = query(
      "a.outer",
      async (_, { execute }) => {
        const envelope = await execute(inner);
        return withData(envelope, { ...(envelope.data as object), seen: true });
      },
      { outputSchema: Type.Object({ n: Type.Integer(), seen: Type.Boolean() }) },
    );
    const envelope = await new OperationRegistry([inner, outer]).execute(outer);
    expect(envelope).toMatchObject({ data: { n: 1, seen: true }, meta: { source: "mcp", isError: false } });
    expect(rawData(envelope)).toEqual({ n: "1", seen: true });
    expect(envelope.meta.waybill?.normalization).toMatchObject({ converted: ["/n"] });
  });

  it("RE-7 mends a copy that lost its mark, and takes nothing else", () => {
    const envelope = localEnvelope(1, "a.b");
    const copy = { ...envelope, extra: 1 };
    expect(withData(copy, 2)).toStrictEqual({ data: 2, meta: envelope.meta });
    expect(isMarkedEnvelope(withData(copy, 2))).toBe(true);
    for (const other of [undefined, null, {}, { data: 1 }, { data: 1, meta: { source: "x" } }]) {
      expect(() => withData(other as never, 1)).toThrow(TypeError);
    }
  });
});

describe("adoptEnvelope", () => {
  it("RE-6 rebuilds each source through its fields, marked, the timestamp kept", () => {
    const facts = { attempts: 1 };
    const metas = [
      { source: "local", operationId: "a.b", timestamp: 1 },
      { source: "local", operationId: "a.b", timestamp: 2, isError: true, waybill: facts },
      { source: "http", ...HTTP, setCookie: ["a=1"], isError: true, waybill: facts },
      { source: "mcp", ...MCP, structuredContent: null, _meta: {}, waybill: facts },
    ] as unknown as readonly ResponseMeta[];
    for (const meta of metas) {
      const adopted = adoptEnvelope(frozen({ data: 1, meta }));
      expect(adopted).toStrictEqual({ data: 1, meta });
      expect(isMarkedEnvelope(adopted)).toBe(true);
      expect(rawData(adopted)).toBe(1);
    }
  });

  it("RE-6 drops what the source does not know", () => {
    const meta = { source: "local", operationId: "a.b", timestamp: 1, content: [], extra: true } as const;
    expect(adoptEnvelope({ data: 1, meta }).meta).toStrictEqual({
      source: "local",
      operationId: "a.b",
      timestamp: 1,
    });
  });
});
