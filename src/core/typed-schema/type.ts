import { Type as TypeBox } from "typebox";

/** A schema of TypeBox, or a plain JSON Schema, where one stands inside another. */
export type TSchema = object;

/** The members of an object by name. */
export type TProperties = Readonly<Record<string, TSchema>>;

/** Describes any value, without checks by the compiler. */
export interface TAny {
  "~kind": "Any";
}

/** Describes any value. */
export interface TUnknown {
  "~kind": "Unknown";
}

/** Describes no value at all. */
export interface TNever {
  "~kind": "Never";
  not: Record<never, never>;
}

/** Describes `null`. */
export interface TNull {
  "~kind": "Null";
  type: "null";
}

/** Describes a boolean. */
export interface TBoolean {
  "~kind": "Boolean";
  type: "boolean";
}

/** Describes a number. */
export interface TNumber {
  "~kind": "Number";
  type: "number";
}

/** Describes a whole number. */
export interface TInteger {
  "~kind": "Integer";
  type: "integer";
}

/** Describes a text. */
export interface TString {
  "~kind": "String";
  type: "string";
}

/** Describes one value. */
export interface TLiteral<V extends string | number | boolean> {
  "~kind": "Literal";
  type: V extends boolean ? "boolean" : V extends number ? "number" : "string";
  const: V;
}

/** Describes one of several values. */
export interface TEnum<V extends readonly (string | number)[]> {
  "~kind": "Enum";
  enum: V;
}

/** Describes an array whose elements are alike. */
export interface TArray<S extends TSchema> {
  "~kind": "Array";
  type: "array";
  items: S;
}

/** Describes an array by the places of its elements. */
export interface TTuple<S extends TSchema[]> {
  "~kind": "Tuple";
  type: "array";
  additionalItems: false;
  items: S;
  minItems: S["length"];
}

/** Describes an object by its members. */
export interface TObject<P extends TProperties> {
  "~kind": "Object";
  type: "object";
  properties: P;
  required: RequiredIn<P>;
}

/** Describes an object whose names fit a pattern, and whose values are alike. */
export interface TRecord<Pattern extends string, S extends TSchema> {
  "~kind": "Record";
  type: "object";
  patternProperties: { [_ in Pattern]: S };
}

/** Describes what fits one of several schemas. */
export interface TUnion<S extends TSchema[]> {
  "~kind": "Union";
  anyOf: S;
}

/** Describes what fits all of several schemas. */
export interface TIntersect<S extends TSchema[]> {
  "~kind": "Intersect";
  allOf: S;
}

/** Stands for one of the definitions of a `TCyclic`. */
export interface TRef<Name extends string> {
  "~kind": "Ref";
  $ref: Name;
}

/** Describes what the definition `Name` describes; definitions may name each other. */
export interface TCyclic<Defs extends TProperties, Name extends string> {
  "~kind": "Cyclic";
  $defs: Defs;
  $ref: Name;
}

/** Describes `T` by whatever schema it was made of. */
export interface TUnsafe<T> {
  "~unsafe": T;
}

/** A member that may be missing. */
export type TOptional<S extends TSchema> = S & { "~optional": true };

/** A member that the types call read-only. */
export type TReadonly<S extends TSchema> = S & { "~readonly": true };

/** The names of the members that must be there, in order. */
type RequiredIn<P> =
  TupleOf<
    Extract<{ [K in keyof P]: P[K] extends { "~optional": true } ? never : K }[keyof P], string>
  > extends infer Names
    ? Names extends []
      ? undefined
      : Names
    : never;

type TupleOf<U, T extends unknown[] = []> = [U] extends [never]
  ? T
  : LastOf<U> extends infer Last
    ? TupleOf<Exclude<U, Last>, [Last, ...T]>
    : never;

type LastOf<U> = (U extends unknown ? (part: () => U) => void : never) extends (part: infer F) => void
  ? F extends () => infer Last
    ? Last
    : never
  : never;

type RecordOf<K, S extends TSchema> = K extends {
  "~kind": "Literal";
  const: infer Name extends string | number;
}
  ? TObject<{ [_ in Name as `${_}`]: S }>
  : K extends { "~kind": "Union"; anyOf: readonly { const: infer Name extends string | number }[] }
    ? TObject<{ [_ in Name as `${_}`]: S }>
    : K extends { "~kind": "Enum"; enum: readonly (infer Name extends string | number)[] }
      ? TObject<{ [_ in Name as `${_}`]: S }>
      : K extends { "~kind": "Integer" }
        ? TRecord<"^-?(?:0|[1-9][0-9]*)$", S>
        : K extends { "~kind": "Number" }
          ? TRecord<"^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$", S>
          : TRecord<"^.*$", S>;

interface AnnotationOptions {
  $schema?: string;
  $id?: string;
  title?: string;
  description?: string;
  default?: unknown;
  examples?: unknown;
  readOnly?: boolean;
  writeOnly?: boolean;
  if?: TSchema;
  then?: TSchema;
  else?: TSchema;
  [keyword: string]: unknown;
}

interface NumberOptions extends AnnotationOptions {
  minimum?: number | bigint;
  maximum?: number | bigint;
  exclusiveMinimum?: number | bigint;
  exclusiveMaximum?: number | bigint;
  multipleOf?: number | bigint;
}

interface StringOptions extends AnnotationOptions {
  minLength?: number;
  maxLength?: number;
  pattern?: string | RegExp;
  format?: string;
}

interface ArrayOptions extends AnnotationOptions {
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  contains?: TSchema;
  minContains?: number;
  maxContains?: number;
  unevaluatedItems?: TSchema | boolean;
}

interface ObjectOptions extends AnnotationOptions {
  additionalProperties?: TSchema | boolean;
  unevaluatedProperties?: TSchema | boolean;
  minProperties?: number;
  maxProperties?: number;
  patternProperties?: Record<string, TSchema>;
  propertyNames?: TSchema;
  dependentRequired?: Record<string, string[]>;
  dependentSchemas?: Record<string, TSchema>;
}

/** The functions of TypeBox that make schemas of JSON values, by types of our own: TypeBox's take a compiler 2.3 million instantiations to check. */
export interface TypeBuilder {
  Any(options?: AnnotationOptions): TAny;
  Unknown(options?: AnnotationOptions): TUnknown;
  Never(options?: AnnotationOptions): TNever;
  Null(options?: AnnotationOptions): TNull;
  Boolean(options?: AnnotationOptions): TBoolean;
  Number(options?: NumberOptions): TNumber;
  Integer(options?: NumberOptions): TInteger;
  String(options?: StringOptions): TString;
  Literal<V extends string | number | boolean>(value: V, options?: AnnotationOptions): TLiteral<V>;
  Enum<V extends (string | number)[]>(values: readonly [...V], options?: AnnotationOptions): TEnum<V>;
  Enum<E extends Readonly<Record<string, string | number>>>(
    values: E,
    options?: AnnotationOptions,
  ): TEnum<E[keyof E][]>;
  Array<S extends TSchema>(items: S, options?: ArrayOptions): TArray<S>;
  Tuple<S extends TSchema[]>(items: [...S], options?: ArrayOptions): TTuple<S>;
  Object<P extends TProperties>(properties: P, options?: ObjectOptions): TObject<P>;
  Record<K extends TSchema, S extends TSchema>(key: K, value: S, options?: ObjectOptions): RecordOf<K, S>;
  Union<S extends TSchema[]>(anyOf: [...S], options?: AnnotationOptions): TUnion<S>;
  Intersect<S extends TSchema[]>(allOf: [...S], options?: ObjectOptions): TIntersect<S>;
  Ref<Name extends string>(name: Name, options?: AnnotationOptions): TRef<Name>;
  Cyclic<Defs extends TProperties, Name extends string>(
    $defs: Defs,
    $ref: Name,
    options?: AnnotationOptions,
  ): TCyclic<Defs, Name>;
  Unsafe<T>(schema: TSchema): TUnsafe<T>;
  Optional<S extends TSchema>(schema: S): TOptional<S>;
  Readonly<S extends TSchema>(schema: S): TReadonly<S>;
  Partial<P extends TProperties>(
    schema: TObject<P>,
    options?: ObjectOptions,
  ): TObject<{ [K in keyof P]: TOptional<P[K]> }>;
  Required<P extends TProperties>(
    schema: TObject<P>,
    options?: ObjectOptions,
  ): TObject<{ [K in keyof P]: P[K] extends TOptional<infer S> ? S : P[K] }>;
  Pick<P extends TProperties, K extends string & keyof P>(
    schema: TObject<P>,
    names: readonly K[],
    options?: ObjectOptions,
  ): TObject<Pick<P, K>>;
  Omit<P extends TProperties, K extends string & keyof P>(
    schema: TObject<P>,
    names: readonly K[],
    options?: ObjectOptions,
  ): TObject<Omit<P, K>>;
}

/** Makes schemas: TypeBox's own functions, under the types of `TypeBuilder`. */
export const Type = TypeBox as unknown as TypeBuilder;
