import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Value } from "@sinclair/typebox/value";
import { Compile } from "typebox/compile";
import { Check } from "typebox/value";
import { describe, expect, it } from "vitest";
import {
  HTTPResponseMetaSchema,
  isResponseEnvelope,
  LocalResponseMetaSchema,
  MCPContentBlockSchema,
  MCPResponseMetaSchema,
  mcpEnvelope,
  type ResponseEnvelope,
  ResponseEnvelopeSchema,
  ResponseMetaSchema,
  result,
  toolError,
} from "../src/index.ts";
import { HARDENED } from "./run-node.ts";

/** What a user of TypeBox 0.34 writes: the types of the two generations do not know each other. */
const FirstSchema = Type.Unsafe<ResponseEnvelope>(ResponseEnvelopeSchema);

/** How either TypeBox checks a value; the ways that generate code are left out where that is forbidden. */
const CHECKS: Readonly<Record<string, (value: unknown) => boolean>> = {
  "Check of TypeBox 1": (value) => Check(ResponseEnvelopeSchema, value),
  "Compile of TypeBox 1": (value) => Compile(ResponseEnvelopeSchema).Check(value),
  "Value.Check of TypeBox 0.34": (value) => Value.Check(FirstSchema, value),
  "Value.Check of TypeBox 0.34, given the schema itself": (value) =>
    Value.Check(ResponseEnvelopeSchema as never, value),
  ...(HARDENED
    ? {}
    : {
        "TypeCompiler of TypeBox 0.34": (value: unknown) => TypeCompiler.Compile(FirstSchema).Check(value),
      }),
};

const local = { source: "local", operationId: "a.b", timestamp: 1 };
const http = { source: "http", statusCode: 200, headers: { a: "1" }, contentType: "text/plain" };
const mcp = { source: "mcp", isError: false, content: [{ type: "text", text: "x" }] };

/** Every field that an operation can say, as it travels. */
const said = {
  status: "warn",
  summary: "s",
  details: ["a"],
  nextSteps: ["b"],
  content: [
    { type: "text", text: "x", annotations: { audience: ["user"], priority: 1 } },
    { type: "resource_link", uri: "a:b", name: "n", size: 1, _meta: {} },
  ],
  truncated: true,
  tokenUsage: { inline: 1, total: 2 },
  rateLimit: { remaining: 1, resetSeconds: 2 },
  capabilities: ["c"],
  upgradeHints: [{ feature: "f", tier: "pro", reason: "r" }],
  category: "timeout",
  recoverable: true,
  suggestedAction: "a",
  nextTool: "t",
  errorExtra: { a: 1 },
  _meta: { a: { b: 1 } },
  extra: { mcp: { a: 1 } },
};

const withFacts = (waybill: object) => ({ data: null, meta: { ...local, waybill } });

const VALID: Readonly<Record<string, unknown>> = {
  local: { data: 1, meta: local },
  "no data": { data: undefined, meta: local },
  http: { data: {}, meta: { ...http, setCookie: ["a"], isError: true } },
  mcp: { data: [], meta: { ...mcp, structuredContent: 0, _meta: { a: 1 } } },
  "an unknown field": { data: 1, meta: { ...local, more: 1 }, more: 1 },
  "everything said": withFacts({ said, code: "C", message: "m", details: { a: 1 } }),
  "nothing said": withFacts({ said: {} }),
  "a page": withFacts({ page: { next: "n", input: { a: 1 } } }),
  result: result({ a: 1 }, { summary: "s", status: "info", links: [{ uri: "a:b", name: "n" }] }),
  toolError: toolError(null, { code: "C", details: { a: [1] }, nextTool: "t" }),
  mcpEnvelope: mcpEnvelope(1, { isError: true, content: [] }),
};

const INVALID: Readonly<Record<string, unknown>> = {
  null: null,
  "a list": [],
  "no meta": { data: 1 },
  "no data": { meta: local },
  "another source": { data: 1, meta: { ...local, source: "ftp" } },
  "fields of another source": { data: 1, meta: { ...http, source: "mcp" } },
  "a wrong field": { data: 1, meta: { ...local, timestamp: "1" } },
  "isError: false of a local one": { data: 1, meta: { ...local, isError: false } },
  "a header that is no text": { data: 1, meta: { ...http, headers: { "a\nb": 1 } } },
  "an unknown block": { data: 1, meta: { ...mcp, content: [{ type: "video" }] } },
  "_meta that is a list": { data: 1, meta: { ...mcp, _meta: [] } },
  "facts that are a text": withFacts("x" as never),
  "a page with a number": withFacts({ page: { next: 1 } }),
  "layout of a format that is no object": withFacts({ said: { extra: { mcp: 1 } } }),
  "a hint without a reason": withFacts({ said: { upgradeHints: [{ feature: "f", tier: "pro" }] } }),
  "a count that is a text": withFacts({ said: { tokenUsage: { inline: "1" } } }),
  ...Object.fromEntries(
    Object.keys(said).map((name) => [
      `said.${name} as a number`,
      withFacts({ said: { ...said, [name]: 7 } }),
    ]),
  ),
};

describe.each(Object.entries(CHECKS))("%s", (_, check) => {
  it.each(Object.entries(VALID))("RE-9 X-7 takes an envelope: %s", (_name, value) => {
    expect(check(value)).toBe(true);
    expect(isResponseEnvelope(value)).toBe(true);
  });

  it.each(Object.entries(INVALID))("RE-9 X-7 refuses what is none: %s", (_name, value) => {
    expect(check(value)).toBe(false);
    expect(isResponseEnvelope(value)).toBe(false);
  });
});

describe("the schemas of envelopes", () => {
  const KIND = Symbol.for("TypeBox.Kind");
  const SCHEMAS = {
    ResponseEnvelopeSchema,
    ResponseMetaSchema,
    LocalResponseMetaSchema,
    HTTPResponseMetaSchema,
    MCPResponseMetaSchema,
    MCPContentBlockSchema,
  };

  it.each(Object.entries(SCHEMAS))(
    "RE-9 %s is marked for TypeBox 0.34 through and through, and stays plain JSON Schema",
    (_, schema) => {
      const unmarked: string[] = [];
      const look = (part: unknown, at: string) => {
        if (typeof part !== "object" || part === null) return;
        const { properties = {}, items, anyOf = [], additionalProperties } = part as Record<string, object>;
        if (!(KIND in part)) unmarked.push(at);
        for (const [key, inner] of Object.entries(properties)) look(inner, `${at}/${key}`);
        for (const inner of [items, additionalProperties, ...(anyOf as object[])]) look(inner, `${at}/*`);
      };
      look(schema, "");
      expect(unmarked).toEqual([]);
      expect(
        Reflect.ownKeys(schema).filter((key) => Object.getOwnPropertyDescriptor(schema, key)?.enumerable),
      ).toEqual(Object.keys(JSON.parse(JSON.stringify(schema))));
    },
  );
});
