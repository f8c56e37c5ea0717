import fc from "fast-check";
import { Check } from "typebox/value";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { httpEnvelope, isResponseEnvelope, localEnvelope, mcpEnvelope, toolError } from "./envelope.ts";
import { ResponseEnvelopeSchema } from "./envelope-schemas.ts";

type Fields = Record<string, unknown>;

const LOCAL: Fields = { source: "local", operationId: "a.b", timestamp: 1 };
const HTTP: Fields = { source: "http", statusCode: 200, headers: { a: "1" }, contentType: "" };
const MCP: Fields = { source: "mcp", isError: false, content: [] };

const TEXT: Fields = { type: "text", text: "x" };
const IMAGE: Fields = { type: "image", data: "AA==", mimeType: "image/png" };
const AUDIO: Fields = { type: "audio", data: "AA==", mimeType: "audio/wav" };
const RESOURCE: Fields = { type: "resource", resource: { uri: "a:b" } };
const LINK: Fields = { type: "resource_link", uri: "a:b", name: "b" };

const FACTS: Fields = {
  durationMs: 1.5,
  attempts: 1,
  obtained: "body",
  normalization: { stripped: ["/a"], defaulted: [], converted: [], omitted: 1 },
  violations: [{ pointer: "/a", expected: "a string", found: "7" }],
  sequence: 0,
  cursor: "c",
  page: { next: "n" },
  code: "X",
  message: "x",
  details: { any: [1] },
};

/** Both deciders at once: the guard, and the schema on the same JSON. */
function accepts(meta: unknown): boolean {
  const value = { data: null, meta };
  const verdict = isResponseEnvelope(value);
  expect(Check(ResponseEnvelopeSchema, value)).toBe(verdict);
  return verdict;
}

const block = (...blocks: readonly Fields[]): Fields => ({ ...MCP, content: blocks });
const facts = (changes: Fields): Fields => ({ ...LOCAL, waybill: { ...FACTS, ...changes } });

function without(fields: Fields, name: string): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name));
}

describe("the fields each source requires", () => {
  it.each([
    ["local", LOCAL],
    ["local with everything", { ...LOCAL, isError: true, waybill: FACTS }],
    ["http", HTTP],
    ["http with everything", { ...HTTP, setCookie: ["a=1"], isError: true, waybill: FACTS }],
    ["mcp", MCP],
    [
      "mcp with everything",
      { ...MCP, isError: true, structuredContent: null, _meta: { a: 1 }, waybill: FACTS },
    ],
    ["mcp with all blocks", block(TEXT, IMAGE, AUDIO, RESOURCE, LINK)],
    ["unknown fields", { ...LOCAL, extra: 1, waybill: { extra: 1 } }],
    ["no headers", { ...HTTP, headers: {} }],
    ["empty facts", facts({ page: {} })],
  ])("RE-7 RE-9 accepts %s", (_, meta) => {
    expect(accepts(meta)).toBe(true);
  });

  it.each([LOCAL, HTTP, MCP].flatMap((meta) => Object.keys(meta).map((key) => [key, meta] as const)))(
    "RE-7 RE-9 misses %s in %j",
    (key, meta) => {
      expect(accepts(without(meta, key))).toBe(false);
    },
  );

  it.each([
    ["another source", { ...LOCAL, source: "ftp" }],
    ["a source from a prototype's names", { ...LOCAL, source: "constructor" }],
    ["a source that is a list", { ...LOCAL, source: ["local"] }],
    ["an operation id that is no string", { ...LOCAL, operationId: 1 }],
    ["a timestamp that is no number", { ...LOCAL, timestamp: "1" }],
    ["an infinite timestamp", { ...LOCAL, timestamp: Number.POSITIVE_INFINITY }],
    ["isError that is false", { ...LOCAL, isError: false }],
    ["isError that is 1", { ...HTTP, isError: 1 }],
    ["facts that are a list", { ...LOCAL, waybill: [] }],
    ["facts that are null", { ...HTTP, waybill: null }],
    ["facts of mcp that are text", { ...MCP, waybill: "x" }],
    ["a status that is no integer", { ...HTTP, statusCode: 200.5 }],
    ["a status that is text", { ...HTTP, statusCode: "200" }],
    ["headers that are a list", { ...HTTP, headers: [] }],
    ["a header that is no string", { ...HTTP, headers: { a: "1", b: 2 } }],
    ["a header with a line break that is no string", { ...HTTP, headers: { "a\nb": 2 } }],
    ["a header named __proto__ that is no string", { ...HTTP, headers: JSON.parse('{"__proto__": 1}') }],
    ["a content type that is null", { ...HTTP, contentType: null }],
    ["one cookie that is not in a list", { ...HTTP, setCookie: "a=1" }],
    ["a cookie that is no string", { ...HTTP, setCookie: ["a=1", 2] }],
    ["isError of mcp that is no boolean", { ...MCP, isError: 0 }],
    ["content that is no list", { ...MCP, content: {} }],
    ["_meta that is a list", { ...MCP, _meta: [] }],
    ["no meta but null", null],
    ["a list for meta", []],
    ["text for meta", "local"],
  ])("RE-7 RE-9 refuses %s", (_, meta) => {
    expect(accepts(meta)).toBe(false);
  });
});

describe("content blocks", () => {
  it.each(
    [TEXT, IMAGE, AUDIO, RESOURCE, LINK].flatMap((one) => Object.keys(one).map((key) => [key, one] as const)),
  )("RE-5 RE-7 misses %s in %j", (key, one) => {
    expect(accepts(block(without(one, key)))).toBe(false);
    expect(accepts(block({ ...one, [key]: 7 }))).toBe(false);
  });

  it.each([TEXT, IMAGE, AUDIO, RESOURCE, LINK])("RE-5 RE-7 checks annotations and _meta of %j", (one) => {
    const annotations = { audience: ["user", "assistant"], priority: 0.5, lastModified: "2026-01-01" };
    expect(accepts(block({ ...one, annotations, _meta: { a: 1 } }))).toBe(true);
    expect(accepts(block({ ...one, annotations: {} }))).toBe(true);
    expect(accepts(block({ ...one, annotations: { audience: ["system"] } }))).toBe(false);
    expect(accepts(block({ ...one, annotations: { priority: "high" } }))).toBe(false);
    expect(accepts(block({ ...one, annotations: { lastModified: 1 } }))).toBe(false);
    expect(accepts(block({ ...one, annotations: [] }))).toBe(false);
    expect(accepts(block({ ...one, _meta: "x" }))).toBe(false);
  });

  it.each(["mimeType", "text", "blob"])("RE-5 RE-7 checks %s of an embedded resource", (key) => {
    const resource = { uri: "a:b", _meta: {} };
    expect(accepts(block({ type: "resource", resource: { ...resource, [key]: "x" } }))).toBe(true);
    expect(accepts(block({ type: "resource", resource: { ...resource, [key]: 1 } }))).toBe(false);
    expect(accepts(block({ type: "resource", resource: { [key]: "x" } }))).toBe(false);
  });

  it("RE-5 RE-7 checks _meta of an embedded resource", () => {
    expect(accepts(block({ type: "resource", resource: { uri: "a:b", _meta: 1 } }))).toBe(false);
  });

  it.each([
    ["title", "x", 1],
    ["description", "x", 1],
    ["mimeType", "x", 1],
    ["size", 1, "x"],
  ])("RE-5 RE-7 checks %s of a resource link", (key, good, bad) => {
    expect(accepts(block({ ...LINK, [key]: good }))).toBe(true);
    expect(accepts(block({ ...LINK, [key]: bad }))).toBe(false);
  });

  it.each([{ type: "video", data: "AA==" }, { type: "toString" }, {}])(
    "RE-5 RE-7 refuses the block %j",
    (one) => {
      expect(accepts(block(TEXT, one))).toBe(false);
    },
  );

  it("RE-5 RE-7 refuses blocks that are no objects", () => {
    expect(accepts({ ...MCP, content: ["text"] })).toBe(false);
    expect(accepts({ ...MCP, content: [null] })).toBe(false);
  });
});

describe("facts", () => {
  it.each([
    "structured-content",
    "envelope-block",
    "contract-json",
    "text-json",
    "content",
    "body",
    "return-value",
  ])("RE-7 RE-9 accepts data obtained from %s", (obtained) => {
    expect(accepts(facts({ obtained }))).toBe(true);
  });

  const report = { stripped: [], defaulted: [], converted: [] };

  it.each([
    ["durationMs", "1"],
    ["attempts", null],
    ["obtained", "a guess"],
    ["normalization", []],
    ["normalization", { ...report, stripped: [1] }],
    ["normalization", { ...report, defaulted: "x" }],
    ["normalization", { ...report, omitted: "x" }],
    ["normalization", { stripped: [], defaulted: [] }],
    ["normalization", { stripped: [], converted: [] }],
    ["normalization", { defaulted: [], converted: [] }],
    ["violations", {}],
    ["violations", [{ pointer: "", expected: "" }]],
    ["violations", [{ pointer: "", found: "" }]],
    ["violations", [{ expected: "", found: "" }]],
    ["violations", [{ pointer: 1, expected: "", found: "" }]],
    ["sequence", "0"],
    ["cursor", 0],
    ["page", "n"],
    ["page", { next: 1 }],
    ["code", 1],
    ["message", {}],
  ])("RE-7 RE-9 refuses %s of %j", (key, value) => {
    expect(accepts(facts({ [key]: value }))).toBe(false);
    expect(accepts(facts({ [key]: FACTS[key] }))).toBe(true);
  });
});

describe("the envelope itself", () => {
  it("RE-7 accepts what every factory makes", () => {
    const made = [
      localEnvelope(undefined, "a.b"),
      toolError(1, { code: "X", message: "x", details: { left: 1 } }),
      httpEnvelope(1, { statusCode: 204, headers: {} }),
      mcpEnvelope(1, { isError: true, content: [{ type: "text", text: "no" }], structuredContent: 0 }),
    ];
    for (const envelope of made) expect(isResponseEnvelope(envelope)).toBe(true);
  });

  it("RE-7 RE-9 wants data to be there, undefined or not", () => {
    expect(isResponseEnvelope({ meta: LOCAL })).toBe(false);
    expect(Check(ResponseEnvelopeSchema, { meta: LOCAL })).toBe(false);
    expect(isResponseEnvelope({ data: undefined, meta: LOCAL })).toBe(true);
    expect(isResponseEnvelope({ data: 1 })).toBe(false);
  });

  it("RE-7 takes an undefined optional field for an absent one, not a required one", () => {
    expect(isResponseEnvelope({ data: 1, meta: { ...LOCAL, isError: undefined, waybill: undefined } })).toBe(
      true,
    );
    expect(isResponseEnvelope({ data: 1, meta: { ...LOCAL, timestamp: undefined } })).toBe(false);
  });

  it.each([undefined, null, 0, "", true, Symbol("x"), () => undefined, [], {}])(
    "RE-7 refuses %o",
    (value) => {
      expect(isResponseEnvelope(value)).toBe(false);
    },
  );

  it("RE-7 counts own properties only", () => {
    expect(isResponseEnvelope(Object.create({ data: 1, meta: LOCAL }))).toBe(false);
    expect(isResponseEnvelope({ data: 1, meta: Object.create(LOCAL) })).toBe(false);
    expect(
      isResponseEnvelope({
        data: 1,
        meta: Object.assign(Object.create({ timestamp: 1 }), without(LOCAL, "timestamp")),
      }),
    ).toBe(false);
    const inherited = Object.assign(Object.create(null), { ...LOCAL });
    expect(isResponseEnvelope({ data: 1, meta: inherited })).toBe(true);
  });

  it("RE-7 does not take the source from a prototype", () => {
    const prototype = Object.assign(Object.create(null), { source: "local" });
    const meta = Object.assign(Object.create(prototype), without(LOCAL, "source"));
    expect(isResponseEnvelope({ data: 1, meta })).toBe(false);
  });

  it("RE-7 does not look at what a prototype offers for an optional field", () => {
    const prototype = Object.assign(Object.create(null), { isError: "nonsense" });
    const meta = Object.assign(Object.create(prototype), LOCAL);
    expect(isResponseEnvelope({ data: 1, meta })).toBe(true);
  });

  it("RE-7 refuses lists, instances and containers in disguise", () => {
    class Meta {
      readonly source = "local";
      readonly operationId = "a.b";
      readonly timestamp = 1;
    }
    expect(isResponseEnvelope(Object.assign([], { data: 1, meta: LOCAL }))).toBe(false);
    expect(isResponseEnvelope({ data: 1, meta: new Meta() })).toBe(false);
    expect(isResponseEnvelope({ data: 1, meta: { ...HTTP, headers: new Headers() } })).toBe(false);
    expect(isResponseEnvelope({ data: 1, meta: { ...HTTP, headers: new Map() } })).toBe(false);
  });

  it("RE-7 is not talked over by an array's own methods, nor by holes", () => {
    const content = Object.assign([7], { every: () => true });
    expect(isResponseEnvelope({ data: 1, meta: { ...MCP, content } })).toBe(false);
    expect(isResponseEnvelope({ data: 1, meta: { ...MCP, content: new Array(1) } })).toBe(false);
  });
});

describe("hostile values", () => {
  const throwing = (): never => {
    throw new Error("trap");
  };
  const getter = (key: string, base: object) =>
    Object.defineProperty({ ...base }, key, { get: throwing, enumerable: true });

  it("RE-7 never throws on getters that do", () => {
    expect(isResponseEnvelope(getter("meta", { data: 1 }))).toBe(false);
    expect(isResponseEnvelope({ data: 1, meta: getter("source", LOCAL) })).toBe(false);
    expect(isResponseEnvelope({ data: 1, meta: getter("timestamp", LOCAL) })).toBe(false);
    expect(isResponseEnvelope({ data: 1, meta: { ...HTTP, headers: getter("a", {}) } })).toBe(false);
    expect(isResponseEnvelope({ data: 1, meta: { ...MCP, content: [getter("text", TEXT)] } })).toBe(false);
  });

  it("RE-7 never throws on proxies, whatever they trap, nor on revoked ones", () => {
    const traps = ["get", "has", "getPrototypeOf", "ownKeys", "getOwnPropertyDescriptor"];
    for (const trap of traps) {
      const proxy = new Proxy({ data: 1, meta: LOCAL }, { [trap]: throwing });
      expect(typeof isResponseEnvelope(proxy)).toBe("boolean");
      expect(typeof isResponseEnvelope({ data: 1, meta: new Proxy(LOCAL, { [trap]: throwing }) })).toBe(
        "boolean",
      );
    }
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(isResponseEnvelope(proxy)).toBe(false);
    expect(isResponseEnvelope({ data: 1, meta: proxy })).toBe(false);
  });

  it("RE-7 does not touch the data", () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(isResponseEnvelope({ data: proxy, meta: LOCAL })).toBe(true);
  });

  it("RE-7 never throws on anything", () => {
    const anything = fc.anything({
      withBigInt: true,
      withMap: true,
      withNullPrototype: true,
      withSparseArray: true,
    });
    fc.assert(
      fc.property(anything, fc.constantFrom(LOCAL, HTTP, MCP), anything, (value, meta, field) => {
        const changed = Object.fromEntries(Object.keys(meta).map((key) => [key, field]));
        expect(isResponseEnvelope(value)).toBe(false);
        expect(typeof isResponseEnvelope({ data: value, meta: { ...changed, source: meta["source"] } })).toBe(
          "boolean",
        );
      }),
    );
  });
});

describe("agreement with the schema", () => {
  /** A valid meta with one value, anywhere in it, replaced or removed. */
  const whole = [
    { ...LOCAL, isError: true, waybill: FACTS },
    { ...HTTP, setCookie: ["a=1"], waybill: FACTS },
    {
      ...block(TEXT, { ...IMAGE, annotations: { audience: ["user"], priority: 1 } }, RESOURCE, LINK),
      _meta: {},
    },
  ];

  function replaceAt(value: unknown, path: readonly number[], by: unknown): unknown {
    const [step, ...rest] = path;
    if (step === undefined || typeof value !== "object" || value === null) return by;
    const keys = Object.keys(value);
    const chosen = keys[step % Math.max(keys.length, 1)];
    if (chosen === undefined) return by;
    const replaced = replaceAt((value as Fields)[chosen], rest, by);
    if (Array.isArray(value)) return value.map((item, i) => (String(i) === chosen ? replaced : item));
    return { ...value, [chosen]: replaced };
  }

  const path = fc.array(fc.nat(12), { maxLength: 5 });

  it("RE-7 RE-9 guard and schema decide alike on any JSON near an envelope", () => {
    fc.assert(
      fc.property(fc.constantFrom(...whole), path, fc.jsonValue(), (meta, steps, by) => {
        const changed = JSON.parse(JSON.stringify(replaceAt(meta, steps, by)));
        accepts(changed);
      }),
      runs(500),
    );
  });

  it("RE-7 RE-9 guard and schema decide alike on any JSON at all", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(isResponseEnvelope(value)).toBe(Check(ResponseEnvelopeSchema, value));
      }),
    );
  });
});
