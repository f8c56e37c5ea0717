import { Check } from "typebox/value";
import { describe, expect, it } from "vitest";
import {
  HTTPResponseMetaSchema,
  LocalResponseMetaSchema,
  MCPContentBlockSchema,
  MCPResponseMetaSchema,
  ResponseEnvelopeSchema,
  ResponseMetaSchema,
} from "./envelope-schemas.ts";

const local = { source: "local", operationId: "a.b", timestamp: 1 };
const http = { source: "http", statusCode: 200, headers: { a: "1" }, contentType: "text/plain" };
const mcp = { source: "mcp", isError: false, content: [{ type: "text", text: "x" }] };

describe("envelope schemas", () => {
  it.each([
    ["local", LocalResponseMetaSchema, local],
    ["http", HTTPResponseMetaSchema, http],
    ["mcp", MCPResponseMetaSchema, mcp],
  ])("RE-9 the %s schema takes its own meta and no other", (_, schema, own) => {
    for (const meta of [local, http, mcp]) {
      expect(Check(schema, meta)).toBe(meta === own);
      expect(Check(ResponseMetaSchema, meta)).toBe(true);
      expect(Check(ResponseEnvelopeSchema, { data: 1, meta })).toBe(true);
    }
  });

  it("RE-9 the schema of a content block takes the five types and no other", () => {
    const blocks = [
      { type: "text", text: "x" },
      { type: "image", data: "AA==", mimeType: "image/png" },
      { type: "audio", data: "AA==", mimeType: "audio/wav" },
      { type: "resource", resource: { uri: "a:b", text: "x" } },
      { type: "resource_link", uri: "a:b", name: "b", title: "B", size: 3 },
    ];
    for (const block of blocks) expect(Check(MCPContentBlockSchema, block)).toBe(true);
    expect(Check(MCPContentBlockSchema, { type: "video", data: "AA==", mimeType: "video/mp4" })).toBe(false);
  });

  it("RE-9 the schemas are plain JSON Schema, described for those who read them", () => {
    const json = JSON.parse(JSON.stringify(ResponseEnvelopeSchema));
    expect(json).toMatchObject({
      type: "object",
      required: ["data", "meta"],
      properties: { data: { description: "What the operation answered" } },
    });
    expect(json.properties.meta.anyOf).toHaveLength(3);
    expect(Check(ResponseEnvelopeSchema, { data: 1, meta: { ...local, isError: true } })).toBe(true);
    const { properties } = JSON.parse(JSON.stringify(LocalResponseMetaSchema));
    expect(properties.operationId.description).toBe("The full namespace.name");
    expect(properties.timestamp.description).toMatch(/^Unix epoch milliseconds/);
  });
});
