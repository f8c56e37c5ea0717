import { describe, expect, it } from "vitest";
import { mcpEnvelope, toolError, withData } from "../../../core/envelope/envelope.ts";
import { defineOperation } from "../../../core/operation/operation.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { endCall } from "../../../core/result/ended-call.ts";
import type { CallToolResult } from "../../../core/result/tool-result.ts";
import type { JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { toWire } from "../../../core/wire/wire.ts";
import { plainFormat } from "./plain-format.ts";
import { withOutcome } from "./to-result.ts";

async function written(value: () => unknown, outputSchema?: JsonSchemaObject): Promise<CallToolResult> {
  const operation = defineOperation({
    namespace: "a",
    name: "b",
    version: "1.0.0",
    type: "query",
    description: "",
    ...(outputSchema && { outputSchema }),
    handler: value,
  });
  const options = { requestId: "r1" };
  const call = await endCall(
    new OperationRegistry([operation], { onWarning: () => {} }),
    "a.b",
    undefined,
    options,
  );
  return withOutcome(await plainFormat.write(call), call);
}

describe("plainFormat", () => {
  it.each([
    ["text", "text"],
    [{ a: 1 }, '{"a":1}'],
    [null, "null"],
    [[], "[]"],
    [0, "0"],
  ])("RE-30 writes %j as data and as text", async (data, text) => {
    expect(await written(() => data)).toEqual({
      content: [{ type: "text", text }],
      structuredContent: data,
    });
  });

  it("RE-30 says data that a handler put into the result of another tool, in text too", async () => {
    const meta = {
      content: [{ type: "text", text: "Old." }],
      structuredContent: { n: 1 },
      _meta: { "x.y/z": 1 },
    } as const;
    const changed = (isError: boolean) => () =>
      withData(mcpEnvelope({ n: 1 }, { ...meta, isError }), { n: 2 });
    const content = [{ type: "text", text: '{"n":2}' }];
    expect(await written(changed(false))).toEqual({
      content,
      structuredContent: { n: 2 },
      _meta: { "x.y/z": 1 },
    });
    // Structured content that misses the schema would make clients throw an error away.
    const refused = await written(changed(true), { type: "object", required: ["m"] });
    expect([refused.content, refused.isError, refused.structuredContent]).toEqual([content, true, undefined]);
  });

  it("RE-30 shows no block for an error whose data is null", async () => {
    const { content, _meta } = await written(() => toolError(null, { code: "NO", message: "Not today." }));
    expect(content).toEqual([{ type: "text", text: "Not today. [NO]" }]);
    expect(_meta).toMatchObject({ "dev.waybill/result": { outcome: "tool-error", wire: null } });
    expect((await written(() => toolError(null))).content).toEqual([
      { type: "text", text: "The operation reported an error." },
    ]);
  });

  it("RE-30 says nothing where there is nothing, but for those who can tell undefined from no data", async () => {
    const { _meta, ...visible } = await written(() => undefined);
    expect(visible).toEqual({ content: [] });
    expect(_meta).toEqual({ "dev.waybill/result": { wire: toWire(undefined) } });
  });

  it("X-6 keeps what JSON changes in its wire form, and only that", async () => {
    const { _meta } = await written(() => ({ n: 10n }));
    expect(JSON.stringify(_meta)).toContain("bigint");
    expect((await written(() => ({ n: 10 })))._meta).toBeUndefined();
  });

  it("RE-23 keeps the content of an MCP result whose data came from it", async () => {
    const content = [{ type: "text", text: "hi" }] as const;
    expect(await written(() => mcpEnvelope(content, { isError: false, content }))).toEqual({ content });
    const copy = structuredClone(content);
    expect(await written(() => mcpEnvelope(copy, { isError: false, content }))).toEqual({ content });
    const other = await written(() => mcpEnvelope({ a: 1 }, { isError: false, content }));
    expect(other).toEqual({ content, structuredContent: { a: 1 } });
  });

  it("X-4 keeps the structured content of an MCP error only where no schema can be missed", async () => {
    const meta = { isError: true, content: [], structuredContent: { why: 1 } };
    const needsOk = { type: "object", properties: { ok: {} }, required: ["ok"] };
    expect((await written(() => mcpEnvelope({ why: 1 }, meta))).structuredContent).toEqual({ why: 1 });
    expect((await written(() => mcpEnvelope({ why: 1 }, meta), needsOk)).structuredContent).toBeUndefined();
  });

  it("RE-30 always has words for an error", async () => {
    const result = await written(() => toolError(undefined));
    expect(result).toMatchObject({ isError: true, content: [{ text: "The operation reported an error." }] });
  });
});
