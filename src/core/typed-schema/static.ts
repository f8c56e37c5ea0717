/** The type of the values that a schema describes: of TypeBox (1.x or 0.34) by its kinds, of plain JSON Schema by its keywords. */
export type Static<S> = StaticIn<S, Record<never, never>, Record<never, never>, []>;

/** The same where `Defs` has what a `Ref` may name, `This` the members of the object around it, and `Seen` the references followed so far. */
type StaticIn<S, Defs, This, Seen extends readonly string[]> = S extends { "~unsafe": infer T }
  ? T
  : S extends { "~kind": infer K }
    ? StaticOfKind<K, S, Defs, This, Seen>
    : S extends { params: unknown[]; static: infer T }
      ? T
      : StaticOfJson<S, S, []>;

/** By the kind that each schema of TypeBox 1.x has. */
type StaticOfKind<K, S, Defs, This, Seen extends readonly string[]> = K extends "String" | "TemplateLiteral"
  ? string
  : K extends "Number" | "Integer"
    ? number
    : K extends "Boolean"
      ? boolean
      : K extends "Object"
        ? S extends { properties: infer P }
          ? StaticOfMembers<P, Defs, P>
          : object
        : K extends "Literal"
          ? S extends { const: infer V }
            ? V
            : never
          : K extends "Array"
            ? S extends { items: infer Item }
              ? Frozen<S, StaticIn<Item, Defs, This, Seen>[]>
              : unknown[]
            : K extends "Union"
              ? S extends { anyOf: readonly (infer Part)[] }
                ? StaticIn<Part, Defs, This, Seen>
                : never
              : K extends "Null"
                ? null
                : StaticOfRareKind<K, S, Defs, This, Seen>;

type StaticOfRareKind<K, S, Defs, This, Seen extends readonly string[]> = K extends "Any"
  ? // biome-ignore lint/suspicious/noExplicitAny: what Type.Any() stands for
    any
  : K extends "Enum"
    ? S extends { enum: readonly (infer V)[] }
      ? V
      : never
    : K extends "Record"
      ? S extends { patternProperties: infer P }
        ? Record<RecordKeyOf<keyof P>, StaticIn<P[keyof P], Defs, This, Seen>>
        : never
      : K extends "Tuple"
        ? S extends { items: infer Items extends readonly unknown[] }
          ? Frozen<S, StaticOfElements<Items, Defs, This, Seen>>
          : never
        : K extends "Intersect"
          ? S extends { allOf: infer Parts extends readonly unknown[] }
            ? StaticOfAll<Parts, Defs, This, Seen>
            : never
          : K extends "Cyclic"
            ? S extends { $defs: infer D; $ref: infer Name extends string }
              ? StaticOfRef<Name, D, This, Seen>
              : never
            : K extends "Ref"
              ? S extends { $ref: infer Name extends string }
                ? StaticOfRef<Name, Defs, This, Seen>
                : unknown
              : K extends "This"
                ? StaticOfMembers<This, Defs, This>
                : StaticOfOddKind<K, S, Defs, This, Seen>;

/** Kinds that JSON has no values for, and those that a registry refuses. */
type StaticOfOddKind<K, S, Defs, This, Seen extends readonly string[]> = K extends "Never"
  ? never
  : K extends "Undefined"
    ? undefined
    : K extends "BigInt"
      ? bigint
      : K extends "Dependent"
        ? S extends { if: infer If; then: infer Then; else: infer Else }
          ?
              | (StaticIn<If, Defs, This, Seen> & StaticIn<Then, Defs, This, Seen>)
              | Exclude<StaticIn<Else, Defs, This, Seen>, StaticIn<If, Defs, This, Seen>>
          : never
        : unknown;

type Frozen<S, T extends readonly unknown[]> = S extends { "~immutable": true } ? Readonly<T> : T;

/** What a pattern of `Type.Record` says of the names. */
type RecordKeyOf<P> = P extends "^-?(?:0|[1-9][0-9]*)$" | "^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$"
  ? number
  : string;

type OptionalIn<P> = { [K in keyof P]: P[K] extends { "~optional": true } ? K : never }[keyof P];
type ReadonlyIn<P> = { [K in keyof P]: P[K] extends { "~readonly": true } ? K : never }[keyof P];

/** The members of an object, those that are optional or read-only marked so. */
type StaticOfMembers<P, Defs, This> = keyof P extends never
  ? object
  : WithModifiers<{ [K in keyof P]-?: StaticIn<P[K], Defs, This, []> }, OptionalIn<P>, ReadonlyIn<P>>;

/** `T` with the members that `Optional` and `Fixed` name made optional and read-only. */
type WithModifiers<T, Optional, Fixed> = Flat<
  { readonly [K in keyof T as K & Fixed & Optional]?: T[K] } & {
    readonly [K in keyof T as Exclude<K & Fixed, Optional>]: T[K];
  } & { [K in keyof T as Exclude<K & Optional, Fixed>]?: T[K] } & {
    [K in keyof T as Exclude<K, Fixed | Optional>]: T[K];
  }
>;

type Flat<T> = T extends object ? { [K in keyof T]: T[K] } : T;

type StaticOfAll<
  Parts extends readonly unknown[],
  Defs,
  This,
  Seen extends readonly string[],
  T = unknown,
> = Parts extends readonly [infer First, ...infer Rest]
  ? StaticOfAll<Rest, Defs, This, Seen, T & StaticIn<First, Defs, This, Seen>>
  : T;

type StaticOfElements<
  Items extends readonly unknown[],
  Defs,
  This,
  Seen extends readonly string[],
  T extends readonly unknown[] = [],
> = Items extends readonly [infer First, ...infer Rest]
  ? StaticOfElements<Rest, Defs, This, Seen, [...T, ...StaticOfElement<First, Defs, This, Seen>]>
  : T;

type StaticOfElement<S, Defs, This, Seen extends readonly string[]> = S extends { "~optional": true }
  ? [StaticIn<S, Defs, This, Seen>?]
  : S extends { "~kind": "Rest"; items: { items: infer Item } }
    ? StaticIn<Item, Defs, This, Seen>[]
    : [StaticIn<S, Defs, This, Seen>];

/** What a reference names; nothing is known of one that leads back to itself with no object between. */
type StaticOfRef<Name extends string, Defs, This, Seen extends readonly string[]> = Name extends Seen[number]
  ? unknown
  : Name extends keyof Defs
    ? StaticIn<Defs[Name], Defs, This, [...Seen, Name]>
    : unknown;

/** By the keywords of a plain JSON Schema inside the document `Root`. */
type StaticOfJson<S, Root, Seen extends readonly string[]> = S extends boolean
  ? S extends false
    ? never
    : unknown
  : keyof S extends never
    ? unknown
    : Flat<
        OfType<S> &
          OfProperties<S, Root> &
          OfItems<S, Root, Seen> &
          OfValues<S> &
          OfParts<S, Root, Seen> &
          OfOtherMembers<S, Root, Seen> &
          OfConditions<S, Root, Seen>
      >;

type OfType<S> = S extends { readonly type: infer T }
  ? T extends readonly (infer Name)[]
    ? OfTypeName<Name>
    : OfTypeName<T>
  : unknown;

type OfTypeName<T> = T extends "string"
  ? string
  : T extends "number" | "integer"
    ? number
    : T extends "boolean"
      ? boolean
      : T extends "null"
        ? null
        : T extends "object"
          ? object
          : T extends "array"
            ? NonNullable<unknown>
            : unknown;

type RequiredNames<S> = S extends { readonly required: readonly (infer Name)[] } ? Name : never;

type OfProperties<S, Root> = S extends { readonly properties: infer P }
  ? WithModifiers<
      { -readonly [K in keyof P]-?: StaticOfJson<P[K], Root, []> },
      Exclude<keyof P, RequiredNames<S>>,
      { [K in keyof P]: P[K] extends { readonly readOnly: true } ? K : never }[keyof P]
    > & { [K in Exclude<RequiredNames<S>, keyof P> & PropertyKey]: unknown }
  : S extends { readonly required: readonly (infer Name extends string)[] }
    ? Record<Name, unknown>
    : unknown;

type OfItems<S, Root, Seen extends readonly string[]> = (S extends { readonly items: infer Items }
  ? Items extends readonly unknown[]
    ? OfPrefix<S, Items, Root, Seen>
    : StaticOfJson<Items, Root, Seen>[]
  : unknown) &
  (S extends { readonly prefixItems: infer Items extends readonly unknown[] }
    ? OfPrefix<S, Items, Root, Seen>
    : unknown);

/** Elements by their place: those before `minItems` are there, what comes after the last is `additionalItems`, and `maxItems` ends the list. */
type OfPrefix<
  S,
  Items extends readonly unknown[],
  Root,
  Seen extends readonly string[],
  T extends readonly unknown[] = [],
  IsSure = S extends { readonly minItems: number } ? true : false,
> = S extends { readonly maxItems: T["length"] }
  ? T
  : Items extends readonly [infer First, ...infer Rest]
    ? S extends { readonly minItems: T["length"] }
      ? OfPrefix<S, Rest, Root, Seen, [...T, StaticOfJson<First, Root, Seen>?], false>
      : IsSure extends true
        ? OfPrefix<S, Rest, Root, Seen, [...T, StaticOfJson<First, Root, Seen>], true>
        : OfPrefix<S, Rest, Root, Seen, [...T, StaticOfJson<First, Root, Seen>?], false>
    : S extends { readonly additionalItems: infer More }
      ? More extends false
        ? T
        : [...T, ...StaticOfJson<More, Root, Seen>[]]
      : [...T, ...unknown[]];

type OfValues<S> = (S extends { readonly const: infer V } ? Writable<V> : unknown) &
  (S extends { readonly enum: readonly (infer V)[] } ? Writable<V> : unknown);

type Writable<T> = T extends object ? { -readonly [K in keyof T]: Writable<T[K]> } : T;

type OfParts<S, Root, Seen extends readonly string[]> = (S extends { readonly anyOf: readonly (infer Part)[] }
  ? StaticOfJson<Part, Root, Seen>
  : unknown) &
  (S extends { readonly oneOf: readonly (infer Part)[] } ? StaticOfJson<Part, Root, Seen> : unknown) &
  (S extends { readonly allOf: infer Parts extends readonly unknown[] }
    ? OfAll<Parts, Root, Seen>
    : unknown) &
  (S extends { readonly $ref: infer Ref extends string } ? OfPointer<Ref, Root, Seen> : unknown);

type OfAll<
  Parts extends readonly unknown[],
  Root,
  Seen extends readonly string[],
  T = unknown,
> = Parts extends readonly [infer First, ...infer Rest]
  ? OfAll<Rest, Root, Seen, T & StaticOfJson<First, Root, Seen>>
  : T;

type OfPointer<Ref extends string, Root, Seen extends readonly string[]> = Ref extends Seen[number]
  ? unknown
  : Ref extends "#"
    ? StaticOfJson<Root, Root, [...Seen, Ref]>
    : Ref extends `#/${infer Path}`
      ? StaticOfJson<At<Root, Path>, Root, [...Seen, Ref]>
      : unknown;

/** What stands at a JSON pointer; an open schema where nothing does. */
type At<Value, Path extends string> = Path extends `${infer Key}/${infer Rest}`
  ? At<Member<Value, Unescaped<Key>>, Rest>
  : Member<Value, Unescaped<Path>>;

type Member<Value, Key> = Key extends keyof Value ? Value[Key] : true;

type Unescaped<Key extends string> = Key extends `${infer A}~1${infer B}`
  ? Unescaped<`${A}/${B}`>
  : Key extends `${infer A}~0${infer B}`
    ? `${A}~${Unescaped<B>}`
    : Key;

type OfOtherMembers<S, Root, Seen extends readonly string[]> = (S extends {
  readonly additionalProperties: infer More;
}
  ? OfMore<More, Root, Seen>
  : unknown) &
  (S extends { readonly unevaluatedProperties: infer More } ? OfMore<More, Root, Seen> : unknown) &
  (S extends { readonly patternProperties: infer P }
    ? { [name: string]: StaticOfJson<P[keyof P], Root, Seen> }
    : unknown);

type OfMore<More, Root, Seen extends readonly string[]> = More extends false
  ? unknown
  : { [name: string]: StaticOfJson<More, Root, Seen> };

type OfConditions<S, Root, Seen extends readonly string[]> = S extends { readonly if: infer If }
  ? S extends { readonly then: infer Then; readonly else: infer Else }
    ?
        | (StaticOfJson<If, Root, Seen> & StaticOfJson<Then, Root, Seen>)
        | Exclude<StaticOfJson<Else, Root, Seen>, StaticOfJson<If, Root, Seen>>
    : S extends { readonly then: infer Then }
      ? StaticOfJson<If, Root, Seen> & StaticOfJson<Then, Root, Seen>
      : S extends { readonly else: infer Else }
        ? Exclude<StaticOfJson<Else, Root, Seen>, StaticOfJson<If, Root, Seen>>
        : unknown
  : unknown;
