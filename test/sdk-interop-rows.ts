import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { expect } from "vitest";
import * as z from "zod";
import { type CallToolResult, decodeToolResult, type ToolPayload } from "../src/formats/index.ts";
import { type AnySchema, Type } from "../src/index.ts";
import { type PeerClient, readParts, readText } from "./sdk-peers.ts";

/** A schema of data, with values that fit, do not fit, and fit but are too large to send. */
export interface Row {
  readonly schema: AnySchema;
  /** Allows 0, "", false and null. */
  readonly falsy: AnySchema;
  readonly good: unknown;
  readonly bad: unknown;
  readonly big: unknown;
}

const LINES = Array.from({ length: 400 }, (_, index) => `line ${index} 😀`);
const RECORD = {
  good: { hits: 3, lines: ["a"] },
  bad: { hits: "3", lines: [] },
  big: { hits: 400, lines: LINES },
};
const TREE = {
  good: { name: "a", id: 1, children: [{ name: "b", children: [{ name: "c" }] }] },
  bad: { name: "a", children: [{ name: "b", children: [{ id: 7 }] }] },
  big: { name: "a", children: LINES.map((name) => ({ name, children: [{ name }] })) },
};
export const FALSY = [0, "", false, null];
const TEXT = { type: "string" };
const TREES = { type: "array", items: { $ref: "#" } };

const zodTree = z.object({
  name: z.string(),
  id: z.number().optional(),
  get children() {
    return z.array(zodTree).optional();
  },
});

export const ROWS: Readonly<Record<string, Row>> = {
  TypeBox: {
    schema: Type.Object({ hits: Type.Integer(), lines: Type.Array(Type.String()) }),
    falsy: Type.Union([Type.Literal(0), Type.Literal(""), Type.Literal(false), Type.Null()]),
    ...RECORD,
  },
  zod: {
    schema: z.object({ hits: z.number().int(), lines: z.array(z.string()) }),
    falsy: z.union([z.literal(0), z.literal(""), z.literal(false), z.null()]),
    ...RECORD,
  },
  "recursive zod": { schema: zodTree, falsy: z.literal([0, "", false, null]), ...TREE },
  valibot: {
    schema: toStandardJsonSchema(v.object({ hits: v.number(), lines: v.array(v.string()) })),
    falsy: toStandardJsonSchema(v.union([v.literal(0), v.literal(""), v.literal(false), v.null()])),
    ...RECORD,
  },
  arktype: {
    schema: type({ hits: "number", lines: "string[]" }),
    falsy: type("0 | '' | false | null"),
    ...RECORD,
  },
  "JSON Schema with references": {
    schema: {
      type: "object",
      properties: { hits: { $ref: "#/$defs/n" }, lines: { $ref: "#/$defs/lines" } },
      required: ["hits", "lines"],
      $defs: {
        n: { type: "integer" },
        lines: { type: "array", items: { $ref: "#/$defs/line" } },
        line: TEXT,
      },
    },
    falsy: { $ref: "#/$defs/falsy", $defs: { falsy: { enum: FALSY } } },
    ...RECORD,
  },
  "recursive JSON Schema": {
    schema: {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { name: TEXT, id: { $ref: "#/definitions/id" }, children: TREES },
      required: ["name"],
      definitions: { id: { type: "integer" } },
    },
    falsy: { enum: FALSY },
    ...TREE,
  },
  "JSON Schema with an id": {
    schema: {
      $id: "https://example.com/tree",
      type: "object",
      properties: { name: TEXT, children: TREES },
      required: ["name"],
    },
    falsy: { $id: "https://example.com/falsy", enum: FALSY },
    ...TREE,
  },
};

/** What arrived is what was sent, and is understood. */
export function expectArrived(arrived: unknown, sent: ToolPayload): void {
  const { structuredContent, content, isError } = sent;
  expect(arrived).toMatchObject({ content, isError });
  expect((arrived as CallToolResult).structuredContent).toStrictEqual(structuredContent);
  const decoded = decodeToolResult(arrived);
  expect(decoded).toMatchObject({ format: "status-envelope", isError, obtained: "structured-content" });
  expect(decoded.data).toStrictEqual(structuredContent.data);
}

/** The whole can be read at once and part by part, and holds the data that was cut. */
export async function expectReadable(client: PeerClient, uri: string, data: unknown): Promise<void> {
  const whole = await readText(client, uri);
  expect(JSON.parse(whole)).toMatchObject({ meta: { summary: "Found" }, data });
  const parts = await readParts(client, uri, whole.length);
  expect(parts.length).toBeGreaterThan(2);
  expect(parts.join("")).toBe(whole);
}
