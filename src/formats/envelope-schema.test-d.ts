import { McpServer as FirstMcpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { McpServer } from "@modelcontextprotocol/server";
import { describe, expectTypeOf, it } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import { defineOperation, type OutputOf, Type } from "../index.ts";
import {
  composeToolPayload,
  createTieredEnvelopeSchema,
  createToolResponseEnvelopeSchema,
  type TieredEnvelope,
  type ToolResponseEnvelope,
  type ToolResponseMeta,
} from "./index.ts";

const INFO = { name: "peer", version: "1.0.0" };
const Hits = z.object({ hits: z.number() });
const TypeBoxHits = Type.Object({ hits: Type.Number() });
const PlainHits = { type: "object", properties: { hits: { type: "number" } } } as const;

const reply = () => composeToolPayload({ meta: { status: "ok", summary: "s" }, data: { hits: 1 } });

describe("schemas of envelopes, by type", () => {
  it("X-7 register on an McpServer of SDK 1, whatever the data is declared with", () => {
    const server = new FirstMcpServer(INFO);
    server.registerTool("a", { outputSchema: createToolResponseEnvelopeSchema(Hits) }, reply);
    server.registerTool("b", { outputSchema: createToolResponseEnvelopeSchema(TypeBoxHits) }, reply);
    server.registerTool("c", { outputSchema: createToolResponseEnvelopeSchema(PlainHits) }, reply);
    server.registerTool("d", { outputSchema: createTieredEnvelopeSchema(Hits) }, reply);
    server.registerTool("e", { outputSchema: createToolResponseEnvelopeSchema(Hits).shape }, reply);
    server.registerTool("f", { outputSchema: createToolResponseEnvelopeSchema(TypeBoxHits).shape }, reply);
    server.registerTool("g", { outputSchema: createTieredEnvelopeSchema(Hits).shape }, reply);
    const inputSchema = z.object({ path: z.string() });
    server.registerTool("h", { inputSchema, outputSchema: createTieredEnvelopeSchema(Hits) }, ({ path }) => {
      expectTypeOf(path).toEqualTypeOf<string>();
      return reply();
    });
  });

  it("X-7 register on an McpServer of SDK 2, whatever the data is declared with", () => {
    const server = new McpServer(INFO);
    server.registerTool("a", { outputSchema: createToolResponseEnvelopeSchema(Hits) }, reply);
    server.registerTool("b", { outputSchema: createToolResponseEnvelopeSchema(TypeBoxHits) }, reply);
    server.registerTool("c", { outputSchema: createToolResponseEnvelopeSchema(PlainHits) }, reply);
    server.registerTool("d", { outputSchema: createTieredEnvelopeSchema(Hits) }, reply);
  });

  it("X-7 are zod schemas of the envelope", () => {
    const schema = createToolResponseEnvelopeSchema(Hits);
    expectTypeOf<z.infer<typeof schema>>().toEqualTypeOf<ToolResponseEnvelope<{ hits: number }>>();
    const outer = z.object({ reply: schema, more: z.array(schema).optional() });
    expectTypeOf<z.infer<typeof outer>["reply"]>().toEqualTypeOf<ToolResponseEnvelope<{ hits: number }>>();
    const small = mini.object({ reply: createTieredEnvelopeSchema(TypeBoxHits) });
    expectTypeOf<z.infer<typeof small>["reply"]>().toEqualTypeOf<TieredEnvelope<{ hits: number }>>();
    const parsed = z.safeParse(schema, {});
    if (parsed.success) expectTypeOf(parsed.data.data).toEqualTypeOf<{ hits: number }>();
    z.toJSONSchema(schema);
  });

  it("X-7 have a shape with the types of the members", () => {
    const { shape } = createToolResponseEnvelopeSchema(Hits);
    expectTypeOf(shape.data).toEqualTypeOf<typeof Hits>();
    const more = z.object({ ...shape, cost: z.number() });
    expectTypeOf<z.infer<typeof more>>().toEqualTypeOf<{
      meta: ToolResponseMeta;
      data: { hits: number };
      cost: number;
    }>();
    const again = z.object(createTieredEnvelopeSchema(TypeBoxHits).shape);
    expectTypeOf<z.infer<typeof again>["data"]>().toEqualTypeOf<{ hits: number }>();
    expectTypeOf<z.infer<typeof again>["duration_ms"]>().toEqualTypeOf<number | undefined>();
    const bare: Omit<z.infer<typeof again>, "duration_ms"> = {} as z.infer<typeof again>;
    const whole: z.infer<typeof again> = bare;
    expectTypeOf(whole.tool_id).toEqualTypeOf<string>();
  });

  it("X-7 mean their data as the output schema of an operation", () => {
    const operation = defineOperation({
      namespace: "a",
      name: "b",
      type: "query",
      version: "1.0.0",
      description: "Counts",
      inputSchema: z.object({}),
      outputSchema: createToolResponseEnvelopeSchema(Hits),
      handler: () => composeToolPayload({ meta: { status: "ok", summary: "s" }, data: { hits: 1 } }),
    });
    expectTypeOf<OutputOf<typeof operation>>().toEqualTypeOf<{ hits: number }>();
  });
});
