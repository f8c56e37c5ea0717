import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { schemaCases } from "../../../test/arbitrary-schema.ts";
import { query } from "../../../test/make-operation.ts";
import { runs, seededRuns } from "../../../test/runs.ts";
import { defineOperation } from "../../core/operation/operation.ts";
import type { AnyOperation, OperationSpec } from "../../core/operation/operation-types.ts";
import { compileSchema } from "../../core/schema/compile-schema.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import {
  NOTICE_LIMITS,
  type OperationNotice,
  readOperationNotice,
  toOperationNotice,
  type UnusableNotice,
} from "./service-notice.ts";
import { isUsable, SpecPool } from "./service-offers.ts";

const PLAIN = { namespace: "a", name: "b", version: "1.0.0", type: "query", description: "" };
const text = fc.string({ maxLength: 20 });
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const tier = fc.constantFrom("community", "pro", "enterprise");
const scopes = fc.array(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 3 });
const schema = schemaCases(false)
  .map((found) => found.schema)
  .filter(isAccepted);

function isAccepted(found: JsonSchema): boolean {
  try {
    compileSchema(found);
    return true;
  } catch {
    return false;
  }
}

const operations: fc.Arbitrary<AnyOperation> = fc
  .record({
    namespace: fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,10}$/),
    name: fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_./-]{0,20}$/),
    version: fc.constantFrom("1.0.0", "0.1.0-beta.2", "3.2.1+build"),
    type: fc.constantFrom("query", "mutation", "subscription"),
    description: text,
    title: optional(text),
    tags: optional(fc.array(text, { maxLength: 3 })),
    inputSchema: optional(schema),
    outputSchema: optional(schema),
    errors: optional(
      fc.array(
        fc.record({
          code: fc.constantFrom("A_B", "C.d"),
          schema,
          httpStatus: fc.integer({ min: 400, max: 599 }),
        }),
      ),
    ),
    access: optional(fc.record({ scopes: fc.record({ allOf: scopes, anyOf: scopes }) })),
    annotations: optional(fc.record({ readOnly: fc.boolean(), idempotent: fc.boolean() })),
    tier: optional(tier),
    features: optional(fc.constantFrom([], [{ name: "x", tier: "pro", reason: "why" }])),
    durable: optional(fc.boolean()),
  })
  .map((fields) => {
    const present = Object.entries(fields).filter(([, value]) => value !== undefined);
    return defineOperation({ ...Object.fromEntries(present), handler: () => 1 } as unknown as OperationSpec);
  });

/** Looks at a notice all the way, as a directory does. */
function check(value: unknown): { readonly usable: true; readonly notice: OperationNotice } | UnusableNotice {
  const read = readOperationNotice(value);
  if (!read.usable) return read;
  const { id, notice } = read;
  const steps = new SpecPool(1, () => () => 1).vet(read);
  let step = steps.next();
  while (!step.done) step = steps.next();
  if (isUsable(step.value)) return { usable: true, notice };
  return { usable: false, id, reason: step.value.reason ?? "" };
}

const reasonOf = (value: unknown): string => {
  const checked = check(value);
  if (checked.usable) throw new Error("The notice was expected to be unusable.");
  return checked.reason;
};

const nested = (levels: number): unknown => {
  let value: object = {};
  for (let i = 0; i < levels; i++) value = { not: value };
  return value;
};

describe("readOperationNotice", () => {
  it("Discovery: gives back what was written down, for any operation there can be", () => {
    fc.assert(
      fc.property(operations, (operation) => {
        const notice = toOperationNotice(operation);
        const checked = check(JSON.parse(JSON.stringify(notice)));
        expect(checked).toEqual({ usable: true, notice });
      }),
      seededRuns(150),
    );
  });

  it("Discovery: never throws and never waits, whatever comes in", () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withMap: true, withNullPrototype: true }), (value) => {
        expect(check(value).usable).toBe(false);
      }),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.keys(PLAIN), "tags", "errors", "access", "features", "inputSchema"),
        fc.anything(),
        (field, value) => {
          const checked = check({ ...PLAIN, [field]: value });
          if (!checked.usable) expect(checked.reason).not.toBe("");
        },
      ),
      runs(500),
    );
  });

  it("Discovery: says that an object whose getters throw cannot be used", () => {
    const trap = {
      ...PLAIN,
      get tags(): never {
        throw "a string, not an error";
      },
    };
    expect(reasonOf(trap)).toBe("It cannot be read.");
  });

  it("Discovery: ignores fields of later versions, in errors too", () => {
    const notice = {
      ...PLAIN,
      errors: [{ code: "X", since: 2 }],
      handler: "no",
      _meta: {},
      authority: {},
      visibility: "internal",
    };
    expect(check(notice)).toEqual({
      usable: true,
      notice: { ...PLAIN, errors: [{ code: "X" }] },
    });
  });

  it.each(Object.keys(PLAIN))("Discovery: refuses a notice without %s", (field) => {
    const { [field as "name"]: _, ...rest } = PLAIN;
    expect(reasonOf(rest)).toBe(`It has no ${field}.`);
  });

  it.each<[string, object, string]>([
    ["a namespace with a dot", { namespace: "a.b" }, "Its namespace and name do not make an id."],
    ["a name that names nothing", { name: "" }, "Its namespace and name do not make an id."],
    ["a name that is no text", { name: 7 }, "Its name must be a string."],
    ["a version that is none", { version: "1" }, 'Operation "a.b": version must be a semantic version'],
    ["an unknown type", { type: "job" }, 'Operation "a.b": type must be'],
    ["tags that are no texts", { tags: [1] }, "Its tags must be a list of at most 100 strings"],
    ["a schema that is a list", { inputSchema: [] }, "Its inputSchema must be a JSON Schema."],
    ["an unknown keyword value", { inputSchema: { type: "text" } }, "its inputSchema is refused"],
    [
      "a pattern that is none",
      { outputSchema: { type: "string", pattern: "(" } },
      "its outputSchema is refused",
    ],
    ["a reference to nowhere", { inputSchema: { $ref: "#/$defs/none" } }, "its inputSchema is refused"],
    ["a reference to itself", { inputSchema: { $ref: "#" } }, "its inputSchema is refused"],
    [
      "references in a circle",
      { inputSchema: { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } } },
      "its inputSchema is refused",
    ],
    [
      "a remote reference",
      { inputSchema: { $ref: "https://example.com/s.json" } },
      "its inputSchema is refused",
    ],
    [
      "a schema that poses as a library's",
      { inputSchema: { "~standard": { vendor: "x", version: 1 } } },
      "its inputSchema is refused",
    ],
    ["a schema nested too deep", { inputSchema: nested(300) }, "It is nested deeper than 260 levels."],
    ["an error without a code", { errors: [{}] }, "Its errors must be a list of at most 1000"],
    ["errors by code", { errors: { X: {} } }, "Its errors must be a list of at most 1000"],
    [
      "an error with a bad schema",
      { errors: [{ code: "X", schema: { type: 1 } }] },
      "its errors.X.schema is refused",
    ],
    [
      "an error with an odd status",
      { errors: [{ code: "X", httpStatus: 200 }] },
      "errors must be given an httpStatus",
    ],
    ["an access rule of a later version", { access: { roles: ["x"] } }, 'access has no "roles"'],
    ["an access rule with no scopes", { access: { scopes: { allOf: [] } } }, "must list at least one scope"],
    ["a resource that is null", { access: { resource: [null] } }, "access.resource must be an object"],
    ["an access rule that is a list", { access: [] }, "Its access must be an object."],
    [
      "an unknown annotation",
      { annotations: { safe: true } },
      "Its annotations must be an object of readOnly",
    ],
    [
      "an annotation that is no flag",
      { annotations: { readOnly: 1 } },
      "Its annotations must be an object of readOnly",
    ],
    ["an unknown tier", { tier: "gold" }, "tier must be"],
    ["a feature that is null", { features: [null] }, "Its features must be a list of at most 1000"],
    [
      "a feature twice",
      {
        features: [
          { name: "x", tier: "pro" },
          { name: "x", tier: "pro" },
        ],
      },
      "a feature is listed twice",
    ],
    [
      "a reason that is no text",
      { features: [{ name: "x", tier: "pro", reason: {} }] },
      "Its features must be a list",
    ],
    ["a durable that is no flag", { durable: "yes" }, "Its durable must be true or false."],
  ])("Discovery: refuses %s, and says why", (_, fields, reason) => {
    expect(reasonOf({ ...PLAIN, ...fields })).toContain(reason);
  });

  it("Discovery: names the operation where it has a name, and no other", () => {
    expect(check({ ...PLAIN, version: "x" })).toMatchObject({ usable: false, id: "a.b" });
    expect(check({ ...PLAIN, name: "no name" })).toMatchObject({
      usable: false,
      id: undefined,
    });
    expect(check({ ...PLAIN, namespace: "a.b" })).toMatchObject({
      usable: false,
      id: undefined,
    });
  });

  it.each<[string, (count: number) => object, number]>([
    ["title", (count) => ({ title: "x".repeat(count) }), NOTICE_LIMITS.title],
    ["description", (count) => ({ description: "x".repeat(count) }), NOTICE_LIMITS.description],
    ["tags", (count) => ({ tags: Array(count).fill("x") }), NOTICE_LIMITS.tags],
    ["tag", (count) => ({ tags: ["x".repeat(count)] }), NOTICE_LIMITS.tag],
    ["version", (count) => ({ version: `1.0.0-${"x".repeat(count - 6)}` }), NOTICE_LIMITS.version],
    ["errors", (count) => ({ errors: Array(count).fill({ code: "X" }) }), NOTICE_LIMITS.errors],
    [
      "reason",
      (count) => ({ features: [{ name: "x", tier: "pro", reason: "x".repeat(count) }] }),
      NOTICE_LIMITS.description,
    ],
    [
      "pointer",
      (count) => ({ features: [{ name: "x", tier: "pro", pointer: `/${"x".repeat(count - 1)}` }] }),
      NOTICE_LIMITS.pointer,
    ],
    [
      "features",
      (count) => ({ features: Array.from({ length: count }, (_, i) => ({ name: `f${i}`, tier: "pro" })) }),
      NOTICE_LIMITS.features,
    ],
  ])("Discovery: takes as much %s as allowed and not one more", (_, make, limit) => {
    expect(check({ ...PLAIN, ...make(limit) }).usable).toBe(true);
    expect(reasonOf({ ...PLAIN, ...make(limit + 1) })).toContain("at most");
  });

  it("Discovery: refuses a notice that is huge in one place or in all", () => {
    const properties = Object.fromEntries(
      Array.from({ length: 300_000 }, (_, i) => [`property${i}`, { type: "string" }]),
    );
    expect(reasonOf({ ...PLAIN, inputSchema: { properties } })).toContain(
      "It is longer than 8388608 characters.",
    );
    expect(reasonOf({ ...PLAIN, extra: "x".repeat(NOTICE_LIMITS.length) })).toContain("It is longer than");
  });

  it("Discovery: keeps reasons short, whatever is quoted in them", () => {
    expect(reasonOf({ ...PLAIN, access: { ["x".repeat(5_000)]: 1 } }).length).toBeLessThanOrEqual(501);
  });

  it("Discovery: takes names such as __proto__ for names", () => {
    const notice = JSON.parse(`{"__proto__":{"tier":"pro"},${JSON.stringify(PLAIN).slice(1)}`);
    notice.inputSchema = JSON.parse('{"properties":{"__proto__":{"type":"string"},"constructor":{}}}');
    const checked = check(notice);
    if (!checked.usable) throw new Error(checked.reason);
    expect(checked.notice.tier).toBeUndefined();
    expect(JSON.stringify(checked.notice.inputSchema)).toBe(JSON.stringify(notice.inputSchema));
    expect(Object.prototype).not.toHaveProperty("type");
    expect(check(JSON.parse('{"__proto__":{"namespace":"a","name":"b"}}')).usable).toBe(false);
  });

  it("Discovery: is not changed by what happens to the notice later", () => {
    const given = JSON.parse(JSON.stringify(toOperationNotice(query("a.b", () => 1, { tags: ["x"] }))));
    const checked = check(given);
    given.tags.push("y");
    expect(checked).toMatchObject({ notice: { tags: ["x"] } });
    expect(Object.isFrozen(checked.usable && checked.notice.tags)).toBe(true);
  });
});
