import { Type as OldType } from "@sinclair/typebox";
import { type Static as TheirStatic, Type as TheirType } from "typebox";
import { describe, expectTypeOf, it } from "vitest";
import type { Static } from "./static.ts";
import { Type } from "./type.ts";

const ours = Type.Object({
  text: Type.String({ minLength: 1 }),
  number: Type.Optional(Type.Number()),
  fixed: Type.Readonly(Type.Integer()),
  maybe: Type.Readonly(Type.Optional(Type.Boolean())),
  nothing: Type.Null(),
  any: Type.Any(),
  unknown: Type.Unknown(),
  never: Type.Never(),
  one: Type.Literal("a"),
  several: Type.Enum(["a", 1]),
  list: Type.Array(Type.Array(Type.String())),
  place: Type.Tuple([Type.Number(), Type.Optional(Type.String())]),
  names: Type.Record(Type.String(), Type.Number()),
  counts: Type.Record(Type.Integer(), Type.Number()),
  known: Type.Record(Type.Union([Type.Literal("x"), Type.Literal("y")]), Type.Number()),
  either: Type.Union([Type.Literal(1), Type.Object({ a: Type.String() })]),
  both: Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.Number() })]),
  unsafe: Type.Optional(Type.Unsafe<Date>(Type.String())),
  empty: Type.Object({}),
  plain: Type.Object({ a: { type: "string" } as const }),
});

const theirs = TheirType.Object({
  text: TheirType.String({ minLength: 1 }),
  number: TheirType.Optional(TheirType.Number()),
  fixed: TheirType.Readonly(TheirType.Integer()),
  maybe: TheirType.Readonly(TheirType.Optional(TheirType.Boolean())),
  nothing: TheirType.Null(),
  any: TheirType.Any(),
  unknown: TheirType.Unknown(),
  never: TheirType.Never(),
  one: TheirType.Literal("a"),
  several: TheirType.Enum(["a", 1]),
  list: TheirType.Array(TheirType.Array(TheirType.String())),
  place: TheirType.Tuple([TheirType.Number(), TheirType.Optional(TheirType.String())]),
  names: TheirType.Record(TheirType.String(), TheirType.Number()),
  counts: TheirType.Record(TheirType.Integer(), TheirType.Number()),
  known: TheirType.Record(
    TheirType.Union([TheirType.Literal("x"), TheirType.Literal("y")]),
    TheirType.Number(),
  ),
  either: TheirType.Union([TheirType.Literal(1), TheirType.Object({ a: TheirType.String() })]),
  both: TheirType.Intersect([
    TheirType.Object({ a: TheirType.String() }),
    TheirType.Object({ b: TheirType.Number() }),
  ]),
  unsafe: TheirType.Optional(TheirType.Unsafe<Date>(TheirType.String())),
  empty: TheirType.Object({}),
  plain: TheirType.Object({ a: { type: "string" } as const }),
});

describe("the types of values, by schema", () => {
  it("RE-10 are for our Type and a Type of TypeBox what TypeBox says", () => {
    expectTypeOf<Static<typeof theirs>>().toEqualTypeOf<TheirStatic<typeof theirs>>();
    expectTypeOf<Static<typeof ours>>().toEqualTypeOf<TheirStatic<typeof theirs>>();
    expectTypeOf<TheirStatic<typeof ours>>().toEqualTypeOf<TheirStatic<typeof theirs>>();
    expectTypeOf<(typeof ours)["required"]>().toEqualTypeOf<(typeof theirs)["required"]>();
  });

  it("RE-10 follow changes of an object", () => {
    const object = Type.Object({ a: Type.String(), b: Type.Optional(Type.Number()) });
    const partial = Type.Partial(object);
    const required = Type.Required(object);
    const picked = Type.Pick(object, ["a"]);
    const left = Type.Omit(object, ["a"]);
    expectTypeOf<Static<typeof partial>>().toEqualTypeOf<{ a?: string; b?: number }>();
    expectTypeOf<Static<typeof required>>().toEqualTypeOf<{ a: string; b: number }>();
    expectTypeOf<Static<typeof picked>>().toEqualTypeOf<{ a: string }>();
    expectTypeOf<Static<typeof left>>().toEqualTypeOf<{ b?: number }>();
    // @ts-expect-error there is no such member
    Type.Pick(object, ["c"]);
    // @ts-expect-error a member is a schema
    Type.Object({ a: "string" });
    // @ts-expect-error a length is a number
    Type.String({ minLength: "1" });
  });

  it("RE-10 go round with definitions that name each other", () => {
    const tree = Type.Cyclic(
      { Node: Type.Object({ name: Type.String(), children: Type.Array(Type.Ref("Node")) }) },
      "Node",
    );
    type Tree = Static<typeof tree>;
    expectTypeOf<Tree["children"][number]["children"][number]["name"]>().toEqualTypeOf<string>();
    const theirTree = TheirType.Cyclic(
      { Node: TheirType.Object({ name: TheirType.String(), next: TheirType.Ref("Node") }) },
      "Node",
    );
    expectTypeOf<Static<typeof theirTree>["next"]["next"]["name"]>().toEqualTypeOf<string>();
  });

  it("RE-10 are those that TypeBox 0.34 states", () => {
    const old = OldType.Object({ a: OldType.String(), b: OldType.Optional(OldType.Literal(1)) });
    expectTypeOf<Static<typeof old>>().toEqualTypeOf<{ a: string; b?: 1 }>();
  });
});

const plain = {
  object: {
    type: "object",
    properties: {
      a: { type: "string" },
      b: { type: ["integer", "null"] },
      c: { enum: ["x", 1, null] },
      d: { type: "array", items: { type: "object", properties: { e: { const: true } }, required: ["e"] } },
      f: { type: "boolean", readOnly: true },
      g: true,
      h: {},
    },
    required: ["a", "f"],
  },
  closed: {
    type: "object",
    properties: { a: { type: "string" } },
    required: ["a", "b"],
    additionalProperties: false,
  },
  open: { type: "object", additionalProperties: { type: "number" } },
  patterned: { type: "object", patternProperties: { "^x": { type: "number" } } },
  oneOf: { oneOf: [{ type: "string" }, { type: "object", properties: { a: { type: "number" } } }] },
  anyOf: { anyOf: [{ const: "a" }, { const: 2 }, { type: "null" }] },
  allOf: {
    allOf: [
      { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
      { type: "object", properties: { b: { type: "number" } } },
    ],
  },
  tuple: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], minItems: 1 },
  bounded: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], minItems: 2, maxItems: 2 },
  older: { type: "array", items: [{ type: "string" }], additionalItems: { type: "number" } },
  exact: { type: "array", items: [{ type: "string" }], additionalItems: false, minItems: 1 },
  definitions: {
    type: "object",
    properties: { a: { $ref: "#/$defs/x~1y" }, b: { $ref: "#/definitions/z" } },
    required: ["a"],
    $defs: { "x/y": { type: "string" } },
    definitions: { z: { type: "array", items: { $ref: "#/$defs/x~1y" } } },
  },
  conditional: { if: { const: "a" }, then: { type: "string" }, else: { enum: ["a", "b"] } },
  required: { required: ["a"] },
  array: { type: "array" },
  nothing: {},
} as const;

describe("the types of values, by plain JSON Schema", () => {
  it("RE-10 are what TypeBox says of them", () => {
    type Plain = typeof plain;
    type Name = keyof Plain;
    type Ours = { [N in Name]: Static<Plain[N]> };
    type Theirs = { [N in Name]: TheirStatic<Plain[N]> };
    expectTypeOf<Ours>().toEqualTypeOf<Theirs>();
    expectTypeOf<Static<true>>().toEqualTypeOf<unknown>();
    expectTypeOf<Static<false>>().toEqualTypeOf<never>();
  });

  it("RE-10 go round with a schema that names itself", () => {
    type Tree = Static<{
      readonly type: "object";
      readonly properties: {
        readonly name: { readonly type: "string" };
        readonly next: { readonly $ref: "#" };
      };
    }>;
    type Next<T extends { next?: unknown }> = NonNullable<T["next"]>;
    expectTypeOf<Next<Next<Tree>>["name"]>().toEqualTypeOf<string | undefined>();
  });
});
