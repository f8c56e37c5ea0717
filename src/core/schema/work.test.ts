import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { schemaCases } from "../../../test/arbitrary-schema.ts";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { seededRuns } from "../../../test/runs.ts";
import { OperationRegistry, Type } from "../../index.ts";
import { defineOperation } from "../operation/operation.ts";
import { buildNodes } from "./build-nodes.ts";
import { generatePredicates } from "./code-writer.ts";
import { countParts } from "./compare-values.ts";
import { compileSchema } from "./compile-schema.ts";
import { interpretedPredicates, type Predicates } from "./evaluate.ts";
import type { Budget } from "./evaluation.ts";
import { type JsonSchema, MODERN } from "./json-schema.ts";
import { SCHEMA_LIMITS, STEPS_PER_PART } from "./limits.ts";
import { SchemaIndex } from "./schema-index.ts";
import type { SchemaNode } from "./schema-node.ts";
import { snapshotSchema } from "./snapshot-schema.ts";
import { vetNodes } from "./vet-nodes.ts";

const times = <T>(length: number, make: (index: number) => T): T[] =>
  Array.from({ length }, (_, i) => make(i));

/** Each named attack: a schema, and a value of a few megabytes at most. */
const ATTACKS: Readonly<Record<string, () => readonly [JsonSchema, unknown]>> = {
  "items that are one of 200 objects": () => [
    { items: { enum: times(200, (i) => ({ id: i, of: { kind: "parcel" } })) } },
    times(30_000, () => ({ id: 199, of: { kind: "parcel" } })),
  ],
  "contains of an enumeration of objects that is not there": () => [
    { contains: { enum: times(1_000, (i) => ({ id: i })) } },
    times(30_000, () => ({ id: "none" })),
  ],
  "contains of 1,000 alternatives": () => [
    { contains: { anyOf: times(1_000, (i) => ({ type: "integer", minimum: 1_000_000 + i })) } },
    times(30_000, (i) => i),
  ],
  "200 patternProperties over 30,000 names": () => [
    { patternProperties: Object.fromEntries(times(200, (i) => [`^x${i}[a-z]*$`, { type: "integer" }])) },
    Object.fromEntries(times(30_000, (i) => [`name-${i}`, i])),
  ],
  "propertyNames of an enumeration": () => {
    const names = times(20_000, (i) => `name-${i}`);
    return [{ propertyNames: { enum: names } }, Object.fromEntries(names.map((name) => [name, 1]))];
  },
  "anyOf of 1,000": () => [
    { items: { anyOf: times(1_000, (i) => ({ type: "object", required: [`k${i}`] })) } },
    times(30_000, () => ({ k999: 1 })),
  ],
  "oneOf of 1,000": () => [
    { items: { oneOf: times(1_000, (i) => ({ type: "integer", minimum: i, maximum: i })) } },
    times(30_000, (i) => i % 1_000),
  ],
  "allOf of 5,000 that allow everything": () => [
    { items: { allOf: times(5_000, () => true) } },
    times(30_000, () => 1),
  ],
  "500 bounds on the number of 100,000 properties": () => [
    { allOf: times(500, (i) => ({ maxProperties: 1_000_000 + i })) },
    Object.fromEntries(times(100_000, (i) => [`name-${i}`, i])),
  ],
  "500 constants that are small objects, and one of 100,000 properties": () => [
    { anyOf: times(500, (i) => ({ const: { id: i } })) },
    Object.fromEntries(times(100_000, (i) => [`name-${i}`, i])),
  ],
  "200 subschemas that each look at all of 100,000 properties": () => [
    { allOf: times(200, () => ({ additionalProperties: {} })), unevaluatedProperties: false },
    Object.fromEntries(times(100_000, (i) => [`name-${i}`, i])),
  ],
  "200 subschemas that each look at all of 200,000 items": () => [
    { allOf: times(200, () => ({ contains: { type: "number" } })), unevaluatedItems: false },
    times(200_000, (i) => i),
  ],
  "uniqueItems of objects": () => [
    { uniqueItems: true },
    times(30_000, (i) => ({ id: i, name: "x", of: [i, { a: 1 }] })),
  ],
  "alternatives that each walk the whole list": () => [
    { anyOf: times(1_000, (i) => ({ items: { type: "integer", maximum: 29_998 + (i % 2) / 2 } })) },
    times(30_000, (i) => i),
  ],
  "10,000 properties looked for in empty objects": () => [
    { items: { properties: Object.fromEntries(times(10_000, (i) => [`p${i}`, { type: "string" }])) } },
    times(30_000, () => ({})),
  ],
  "defaults of 1,000 properties filled in everywhere": () => [
    { items: { properties: Object.fromEntries(times(1_000, (i) => [`p${i}`, { default: [i] }])) } },
    times(30_000, () => ({})),
  ],
  "a large pattern over many short texts": () => [
    { items: { pattern: "(?:a?){300}b(?:a?){300}c" } },
    times(30_000, () => "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
  ],
  "a pattern with many ways over many short texts": () => [
    { items: { pattern: "^a{1,40}b{1,40}c{0,40}$" } },
    times(30_000, () => "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
  ],
  "lengths of a long text, 1,000 times": () => [
    { anyOf: times(1_000, (i) => ({ maxLength: 1_000_000 + i })) },
    "x".repeat(1_900_000),
  ],
  "required names, each said over and over": () => [
    { items: { required: times(30_000, () => "a") } },
    times(30_000, () => ({ a: 1 })),
  ],
  "unevaluated properties behind alternatives": () => [
    {
      anyOf: times(500, () => ({ additionalProperties: true, required: ["none"] })),
      unevaluatedProperties: false,
    },
    Object.fromEntries(times(30_000, (i) => [`n${i}`, 1])),
  ],
};

/** Generous: the worst of them took minutes, and a part of a value is an item, a name or four characters. */
const MOST_CPU_MS = 2_000;
const MOST_CPU_MS_PER_PART = 0.01;

describe.each([{ codegen: true }, { codegen: false }])("work (codegen: $codegen)", (options) => {
  it.each(Object.keys(ATTACKS))("RE-32 ends in bounded time: %s", (name) => {
    const [schema, value] = (ATTACKS[name] as () => readonly [JsonSchema, unknown])();
    const compiled = compileSchema(schema, options);
    const start = cpuMs();
    const { valid, issues } = compiled.normalize(value);
    const took = cpuMs() - start;
    expect(valid).toBe(issues.length === 0);
    expect(took).toBeLessThan(MOST_CPU_MS + MOST_CPU_MS_PER_PART * countParts(value, 512));
  });

  it("RE-32 has enough steps for large values of usual schemas", () => {
    const row = {
      type: "object",
      properties: {
        id: { type: "string", pattern: "^[0-9a-f]{8}$" },
        mail: { type: "string", pattern: "^([A-Za-z0-9._%+-]+)+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,}$" },
        kind: {
          anyOf: times(20, (i) => ({ type: "object", properties: { tag: { const: i } }, required: ["tag"] })),
        },
        state: { enum: times(50, (i) => `state-${i}`) },
        at: { $ref: "#/$defs/place" },
      },
      required: ["id"],
    };
    const place = { allOf: [{ properties: { x: { type: ["number", "null"] } } }, { required: ["x"] }] };
    const compiled = compileSchema(
      { type: "array", uniqueItems: true, items: row, $defs: { place } },
      options,
    );
    const rows = times(20_000, (i) => ({
      id: i.toString(16).padStart(8, "0"),
      mail: "john.doe@example.com",
      kind: { tag: i % 20 },
      state: `state-${i % 50}`,
      at: { x: i },
    }));
    expect(compiled.errors(rows)).toEqual([]);
    expect(compiled.normalize([...rows, { ...rows[0], id: "ffffffff", more: 1 }])).toMatchObject({
      valid: true,
      report: { stripped: ["/20000/more"] },
    });
  });

  it("RE-32 does as many steps as the limit and the parts of the value allow, and not one more", () => {
    // The schema itself, and each of the hundred.
    const work = 101;
    const schema = { allOf: times(100, () => ({ type: "integer" })) };
    const limited = (steps: number) => compileSchema(schema, { ...options, limits: { steps } });
    const enough = limited(work - STEPS_PER_PART);
    expect([enough.check(1), enough.errors(1), enough.normalize("1").valid]).toEqual([true, [], false]);
    const tooFew = limited(work - STEPS_PER_PART - 1);
    const expected = `a value that can be checked in ${work - STEPS_PER_PART - 1} steps and 8 more for each of its parts`;
    expect(tooFew.check(1)).toBe(false);
    expect(tooFew.isClean(1)).toBe(false);
    expect(tooFew.errors(1)).toEqual([{ pointer: "", expected, found: "number 1" }]);
    expect(tooFew.normalize(1)).toEqual({ value: 1, valid: false, issues: tooFew.errors(1) });
  });

  it("RE-32 refuses a value that passes and takes too much work to be stripped", () => {
    const schema = {
      properties: { a: { allOf: times(30, () => ({ type: "object", properties: { b: {} } })) } },
    };
    const value = { a: { b: 1, c: 2 } };
    const answers = times(100, (i) =>
      compileSchema(schema, { ...options, limits: { steps: 10 * i } }).normalize(value),
    );
    for (const { valid, value: given } of answers) expect(given).toEqual(valid ? { a: { b: 1 } } : value);
    expect(new Set(answers.map(({ valid }) => valid))).toEqual(new Set([false, true]));
  });

  it("RE-32 tells a caller of an operation that the input takes too much work", async () => {
    const registry = new OperationRegistry(
      [
        defineOperation({
          namespace: "work",
          name: "sort",
          version: "1.0.0",
          type: "query",
          description: "Sorts.",
          inputSchema: Type.Unsafe<{ list: unknown[] }>({
            type: "object",
            properties: {
              list: { items: { anyOf: times(1_000, (i) => ({ type: "integer", minimum: 9_000 + i })) } },
            },
          }),
          outputSchema: Type.Unknown(),
          handler: () => null,
        }),
      ],
      options,
    );
    const call = registry.execute("work.sort", { list: times(30_000, (i) => i % 10) });
    await expect(call).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
    await expect(registry.execute("work.sort", { list: times(30_000, () => 9_999) })).resolves.toBeDefined();
  });
});

/** Counts what is read of a value: every look at a property, a prototype or the keys of an object in it. */
function counted(value: unknown, reads: { count: number }): unknown {
  if (typeof value !== "object" || value === null) return value;
  const read = () => {
    reads.count++;
  };
  return new Proxy(value, {
    get: (target, key, receiver) => {
      read();
      return counted(Reflect.get(target, key, receiver), reads);
    },
    ownKeys: (target) => {
      const keys = Reflect.ownKeys(target);
      reads.count += keys.length;
      return keys;
    },
    getOwnPropertyDescriptor: (target, key) => {
      read();
      return Reflect.getOwnPropertyDescriptor(target, key);
    },
  });
}

function nodesOf(schema: JsonSchema): SchemaNode {
  const index = new SchemaIndex({}, SCHEMA_LIMITS, MODERN);
  const place = index.add(snapshotSchema(schema, SCHEMA_LIMITS));
  const { root } = buildNodes(place, index, { limits: SCHEMA_LIMITS });
  vetNodes(root, SCHEMA_LIMITS);
  return root;
}

const PLENTY = 1_000_000_000;

function spent(ask: (budget: Budget) => Predicates, value: unknown): { steps: number; reads: number } {
  const budget: Budget = { steps: PLENTY, depth: SCHEMA_LIMITS.valueDepth };
  const reads = { count: 0 };
  ask(budget).isValid(counted(value, reads), 0);
  return { steps: PLENTY - budget.steps, reads: reads.count };
}

it("RE-32 counts all work: what is read of a value is at most a multiple of the steps and of its size", () => {
  fc.assert(
    fc.property(schemaCases(false), ({ schema, values }) => {
      let nodes: SchemaNode;
      try {
        nodes = nodesOf(schema);
      } catch {
        fc.pre(false);
        return;
      }
      const schemaParts = countParts(schema, 256);
      for (const value of values) {
        const interpreted = spent((budget) => interpretedPredicates(nodes, budget), value);
        const generated = spent((budget) => generatePredicates(nodes, budget, SCHEMA_LIMITS), value);
        const parts = countParts(value, 512);
        expect(interpreted.reads).toBeLessThanOrEqual(20 * (interpreted.steps + schemaParts));
        expect(generated.reads).toBeLessThanOrEqual(20 * (generated.steps + schemaParts));
        // Each subschema is applied to each part at most as often as it stands in the way from the root.
        expect(interpreted.steps).toBeLessThanOrEqual(schemaParts * parts * 4);
      }
    }),
    seededRuns(200),
  );
});

it("RE-32 counts in generated code no fewer steps than the interpreter takes, so that both refuse the same", () => {
  fc.assert(
    fc.property(schemaCases(true), fc.nat({ max: 60 }), ({ schema, values }, steps) => {
      let both: ReturnType<typeof compileSchema>[];
      try {
        both = [true, false].map((codegen) => compileSchema(schema, { codegen, limits: { steps } }));
      } catch {
        fc.pre(false);
        return;
      }
      for (const value of values) {
        const [compiled, interpreted] = both.map((one) => [one.check(value), one.errors(value)]);
        expect(compiled).toEqual(interpreted);
      }
    }),
    seededRuns(200),
  );
});
