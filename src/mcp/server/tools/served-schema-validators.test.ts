import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { AjvJsonSchemaValidator as FirstAjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { schemaCases } from "../../../../test/arbitrary-schema.ts";
import { AWKWARD } from "../../../../test/awkward-schemas.ts";
import { isObject } from "../../../../test/json-values.ts";
import { query } from "../../../../test/make-operation.ts";
import { CHECKING_CLIENTS as CLIENTS } from "../../../../test/mcp-server-peers.ts";
import { HARDENED } from "../../../../test/run-node.ts";
import { scaled, seededRuns } from "../../../../test/runs.ts";
import { STATUS, TIERED } from "../../../../test/sample-results.ts";
import { createTieredEnvelopeSchema, createToolResponseEnvelopeSchema } from "../../../formats/index.ts";
import {
  type CompiledSchema,
  compileSchema,
  type JsonSchema,
  type JsonSchemaObject,
  OperationRegistry,
} from "../../../index.ts";
import { toMcpServer } from "../../index.ts";
import { toServedOutput } from "./served-schema.ts";

const OPEN_INPUT = { type: "object", properties: { any: true, none: false } };
function onWire(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** What the validators of both generations have in common. */
interface Validator {
  getValidator(
    schema: never,
  ): (value: unknown) => { readonly valid: boolean; readonly errorMessage?: string | undefined };
}

/** The validators of clients, made anew like theirs; those that generate code are left out where that is forbidden. */
const VALIDATORS: readonly (readonly [name: string, era: "legacy" | "modern", make: () => Validator])[] = [
  ...(HARDENED
    ? []
    : ([
        ["SDK 1", "legacy", () => new FirstAjvJsonSchemaValidator()],
        ["SDK 2, 2025", "legacy", () => new AjvJsonSchemaValidator()],
        ["SDK 2, 2026", "modern", () => new AjvJsonSchemaValidator()],
      ] as const)),
  ["a worker, 2025", "legacy", () => new CfWorkerJsonSchemaValidator()],
  ["a worker, 2026", "modern", () => new CfWorkerJsonSchemaValidator()],
];

/** How data is dressed, and what the whole of it looks like then. */
const DRESSES: readonly (readonly [
  format: string,
  schema: (json: JsonSchemaObject) => JsonSchemaObject,
  dress: (data: unknown) => unknown,
])[] = [
  ["plain", (json) => json, (data) => data],
  ["status-envelope", (json) => createToolResponseEnvelopeSchema(json), (data) => ({ ...STATUS, data })],
  ["tiered-envelope", (json) => createTieredEnvelopeSchema(json), (data) => ({ ...TIERED, data })],
];

describe.each(VALIDATORS)("the validator of %s", (_name, era, make) => {
  it.each(DRESSES)(
    "RE-30 X-4 accepts in the format %s every value that the real schema accepts",
    (_format, toSchema, dress) => {
      let accepted = 0;
      fc.assert(
        fc.property(schemaCases(false), ({ schema, values }) => {
          const real = compileOrNone(schema);
          if (real === undefined || !isObject(real.json)) return;
          const good = values
            .filter((value) => real.check(value) && !isBeyond(value))
            .map((value) => onWire(dress(value)));
          expectAccepted(toSchema(real.json), era, make(), good);
          accepted += good.length;
        }),
        seededRuns(150),
      );
      expect(accepted).toBeGreaterThan(scaled(100));
    },
  );

  it.each(Object.entries(AWKWARD))(
    "RE-30 X-4 takes %s, and the values that fit",
    (_what, [schema, values]) => {
      const real = compileSchema(schema);
      expect(values.map((value) => real.check(value))).toEqual(values.map(() => true));
      expectAccepted(real.json, era, make(), values.map(onWire));
      for (const [, toSchema, dress] of DRESSES) {
        expectAccepted(
          toSchema(schema),
          era,
          make(),
          values.map((value) => onWire(dress(value))),
        );
      }
    },
  );
});

describe.each(Object.entries(CLIENTS))("%s", (_name, connect) => {
  it("RE-30 X-4 lists and calls every tool, whatever the schemas of the others say", async () => {
    const entries = Object.values(AWKWARD).flatMap(([schema, values]) =>
      values.map((value) => ({ schema, value })),
    );
    const operations = entries.map(({ schema, value }, at) =>
      query(`odd.n${at}`, () => value, { inputSchema: OPEN_INPUT, outputSchema: schema }),
    );
    const server = toMcpServer(new OperationRegistry(operations));
    const client = await connect(server);
    try {
      const { tools } = await client.listTools();
      expect(tools).toHaveLength(entries.length);
      for (const [at, { value }] of entries.entries()) {
        const result = await client.callTool({ name: `odd_n${at}`, arguments: {} });
        expect(result).not.toHaveProperty("isError");
        expect([value, { result: value }]).toContainEqual(result.structuredContent);
      }
    } finally {
      await client.close();
      await server.close();
    }
  });
});

/** Values that validators cannot compare or divide rightly, whatever the schema: they call methods, and read digits. */
function isBeyond(value: unknown): boolean {
  return /"(?:constructor|toString|valueOf)":|\de\+\d/.test(JSON.stringify(value));
}

/** Schemas that no operation could have are of no interest. */
function compileOrNone(schema: JsonSchema): CompiledSchema | undefined {
  try {
    return compileSchema(schema);
  } catch {
    return undefined;
  }
}

/** What is served accepts the values, wrapped where results are. */
function expectAccepted(
  json: JsonSchema,
  era: "legacy" | "modern",
  validator: Validator,
  values: readonly unknown[],
): void {
  const served = toServedOutput(json, era);
  if (served === undefined) return;
  const advertised = onWire(served);
  const isWrapped = era === "legacy" && toServedOutput(json, "modern")?.["type"] !== "object";
  const validate = validator.getValidator(advertised as never);
  for (const value of values) {
    const sent = isWrapped ? { result: value } : value;
    const { valid, errorMessage } = validate(sent);
    expect({ valid, errorMessage, sent, advertised: valid || advertised }).toMatchObject({ valid: true });
  }
}
