import type { StandardTypedV1 } from "@standard-schema/spec";
import type { AccessControl } from "../access/access.ts";
import type { Authority } from "../access/identity.ts";
import type {
  AuthoredResult,
  OtherEnvelope,
  ResponseEnvelope,
  ResponseSource,
  ResultEnvelope,
} from "../envelope/envelope.ts";
import type { KeepLiterals } from "../json/json-value.ts";
import type { ResultReader } from "../result/result-reader.ts";
import type { ResultSaid } from "../result/said.ts";
import type { AnySchema } from "../schema/any-schema.ts";
import type { Static } from "../typed-schema/static.ts";
import type { OperationContext } from "./operation-context.ts";
import type { CursoredValue } from "./with-cursor.ts";

/** Whether an operation reads, changes something, or streams. */
export type OperationType = "query" | "mutation" | "subscription";

/** What to do with data that misses its `outputSchema`: ignore it, report it, or refuse it. */
export type OutputPolicy = "off" | "warn" | "strict";

/** The plans an operation or a feature may belong to, lowest first. */
export type Tier = "community" | "pro" | "enterprise";

/** The schema taken when an operation names none: anything goes. */
export type UnknownSchema = Readonly<Record<never, never>>;

/** One failure an operation announces; a handler raises it by throwing a `CallError` with this code. */
export interface ErrorDeclaration {
  readonly code: string;
  readonly description?: string;
  /** Describes `details`; a mismatch is reported as a warning. */
  readonly schema?: AnySchema;
  /** Between 400 and 599. */
  readonly httpStatus?: number;
}

/** Hints for people and models; nothing is enforced by them. */
export interface OperationAnnotations {
  readonly readOnly?: boolean;
  readonly destructive?: boolean;
  readonly idempotent?: boolean;
  readonly openWorld?: boolean;
}

/** A part of an operation that only some plans include. */
export interface GatedFeature {
  readonly name: string;
  readonly tier: Tier;
  /** Told to callers whose plan lacks it. */
  readonly reason?: string;
  /**
   * JSON pointer into the input: the feature is asked for when something is there that is neither `false` nor `null`.
   * Without one, only the handler can tell, with `requireFeature`.
   */
  readonly pointer?: string;
}

/** Finds the pages of a result: the one interface that `client.pages` follows and that adapters fill. */
export interface Pager<I = unknown, T = unknown> {
  /** The input that asks for the page after this one; nothing on the last. */
  next(envelope: ResponseEnvelope<T>, input: I): I | undefined;
}

/**
 * What a handler may hand back for a value of type `T`: the value, `result` of it, or what says no or speaks for another: an envelope, or
 * a result made with a helper of a format, both with any data.
 */
export type HandlerValue<T> = T | ResultEnvelope<T> | OtherEnvelope | AuthoredResult;

/** What a handler of type `K` returns; subscriptions yield their values. */
export type HandlerResult<K extends OperationType, O> = K extends "subscription"
  ? HandlerStream<AcceptedBy<O>> | Promise<HandlerStream<AcceptedBy<O>>>
  : HandlerValue<AcceptedBy<O>> | Promise<HandlerValue<AcceptedBy<O>>>;

type HandlerStream<T> = AsyncIterable<HandlerValue<T> | CursoredValue<HandlerValue<T>>>;

/** The same for an operation whose results are read by `R`, where there is one; while `R` is open, there is none. */
type HandlerReturn<K extends OperationType, O, R> = [R] extends [never]
  ? HandlerResult<K, O>
  : [R] extends [ReturnsReader]
    ? unknown
    : HandlerResult<K, O>;

/**
 * Nothing at all once `O` is known. The compiler looks at what a handler returns before that, and would widen its literals (`"open"` to
 * `string`).
 */
type LiteralsKept<O> = [O] extends [AnySchema] ? never : KeepLiterals;
type LiteralsPromised<O> = [O] extends [AnySchema] ? never : Promise<KeepLiterals>;
type LiteralsYielded<O> = [O] extends [AnySchema] ? never : AsyncIterable<KeepLiterals>;

declare const DATA_SCHEMA: unique symbol;

/** A schema of a whole published envelope, made by a helper of `waybill/formats`: as `outputSchema` it means its data, `S`. */
export interface EnvelopeOf<S extends AnySchema = AnySchema> {
  readonly [DATA_SCHEMA]: S;
}

/** The schema of the data that an `outputSchema` stands for. */
export type DataPart<O extends AnySchema> = O extends EnvelopeOf<infer S> ? S : O;

/** A reader that can be what an operation `returns`. */
export type ReturnsReader = ResultReader & Required<Pick<ResultReader, "toEnvelope">>;

/** Everything that describes an operation, and the function that runs it. */
export interface OperationSpec<
  NS extends string = string,
  N extends string = string,
  K extends OperationType = OperationType,
  I extends AnySchema = AnySchema,
  O extends AnySchema = AnySchema,
  R extends ReturnsReader | undefined = ReturnsReader | undefined,
> {
  /** Letters, digits, `_` and `-`, at most 64; no dot, so that an id splits at its first one. */
  readonly namespace: NS;
  /** Letters, digits, `_`, `-`, `.` and `/`, at most 200. */
  readonly name: N;
  /** A semantic version. @default "1.0.0" */
  readonly version?: string;
  /** @default "mutation", the careful one: it is never repeated, cached or called to try it out */
  readonly type?: K;
  readonly title?: string;
  /** What models and people choose it by. @default the title, or the name in words */
  readonly description?: string;
  readonly tags?: readonly string[];
  /** Anything goes when absent. */
  readonly inputSchema?: I;
  /** Describes `data`, never the envelope; anything goes when absent. */
  readonly outputSchema?: O;
  /** A list, or a record by code. */
  readonly errors?: readonly ErrorDeclaration[] | Readonly<Record<string, Omit<ErrorDeclaration, "code">>>;
  /** Who may call it; everybody when absent. */
  readonly access?: AccessControl;
  /** Internal operations can only be called by other operations; from outside they do not exist. @default "external" */
  readonly visibility?: "external" | "internal";
  readonly annotations?: OperationAnnotations;
  /** The lowest plan that may call it. @default "community" */
  readonly tier?: Tier;
  readonly features?: readonly GatedFeature[];
  /** Whom the calls made by this handler run as; the caller when absent. */
  readonly authority?: Authority;
  /** Wins over the registry's. */
  readonly outputPolicy?: OutputPolicy;
  /** Where it runs; the input of a remote one goes on exactly as given. @default "local" */
  readonly source?: ResponseSource | "call";
  /** A call is kept by the bus until it has been run, where the bus can do that; see docs/call.md. @default false */
  readonly durable?: boolean;
  /** How to find the next page of a result. */
  readonly pager?: Pager<AcceptedBy<I>, ParsedBy<O>>;
  /**
   * Reads what the handler returns as a tool result, in any published format: `createResultReader()` of `waybill/formats`. For handlers
   * of MCP servers. @default what it returns is data, or made by a helper
   */
  readonly returns?: R;
  /** Says about the data of a success what its handler did not say: summary, next steps and the rest. What it throws is a warning. */
  render?(data: ParsedBy<O>): ResultSaid | undefined;
  readonly _meta?: Readonly<Record<string, unknown>>;
  handler(
    input: ParsedBy<I>,
    context: OperationContext,
  ): HandlerReturn<K, O, R> | LiteralsKept<O> | LiteralsPromised<O> | LiteralsYielded<O>;
}

/** An operation: its spec as plain frozen data, its id, and one function. */
export interface Operation<
  NS extends string = string,
  N extends string = string,
  K extends OperationType = OperationType,
  I extends AnySchema = AnySchema,
  O extends AnySchema = AnySchema,
> extends OperationSpec<NS, N, K, I, O, ReturnsReader | undefined> {
  readonly id: `${NS}.${N}`;
  readonly version: string;
  readonly type: K;
  readonly description: string;
}

/** Any operation, its types forgotten. */
export type AnyOperation = Operation;

/** The type of values a schema accepts, before it parses them. */
export type AcceptedBy<S> = S extends StandardTypedV1
  ? StandardTypedV1.InferInput<S>
  : S extends object
    ? StaticOf<S>
    : unknown;

/** The type of values a schema gives back once parsed, defaults and transforms applied. */
export type ParsedBy<S> = S extends StandardTypedV1
  ? StandardTypedV1.InferOutput<S>
  : S extends object
    ? StaticOf<S>
    : unknown;

/**
 * `Static` behind two `infer`s. While `S` is open, the compiler asks what the type could be at most, and whether it is the same for
 * another `S`: `Static` itself would have all of its branches compared with each other then, which takes seconds.
 */
type StaticOf<S extends object> = S extends infer X extends object
  ? [Static<X>] extends [infer T]
    ? T
    : never
  : never;

/** Types of operations known by id alone: extend it (`declare module "waybill"`) with `"ns.name": { input, output }`. */
// biome-ignore lint/suspicious/noEmptyInterface: users add to it by declaration merging
export interface OperationMap {}

/** The input of an operation, or of an id listed in `OperationMap`. */
export type InputOf<T> = T extends string
  ? MapField<T, "input">
  : T extends Operation<string, string, OperationType, infer I, AnySchema>
    ? AcceptedBy<I>
    : never;

/** The data an operation answers with, or that of an id listed in `OperationMap`. */
export type OutputOf<T> = T extends string
  ? MapField<T, "output">
  : T extends Operation<string, string, OperationType, AnySchema, infer O>
    ? ParsedBy<O>
    : never;

type MapField<Id extends string, Field extends string> = Id extends keyof OperationMap
  ? OperationMap[Id] extends Readonly<Record<Field, infer T>>
    ? T
    : unknown
  : unknown;

/** The namespaces whose operations `Ops` lists; nothing where the list is not known. */
export type NamespaceIn<Ops extends readonly AnyOperation[]> = string extends Ops[number]["namespace"]
  ? never
  : Ops[number]["namespace"];

/** The ids of the operations that `Ops` lists; nothing where the list is not known. */
export type IdIn<Ops extends readonly AnyOperation[]> = [NamespaceIn<Ops>] extends [never]
  ? never
  : Ops[number]["id"];

/** The operation of that id in `Ops`. */
export type OperationIn<Ops extends readonly AnyOperation[], Id> = Extract<Ops[number], { readonly id: Id }>;

/** What a call of `T` is typed by: the operation of that id where `Ops` has it. */
export type TargetIn<Ops extends readonly AnyOperation[], T> =
  T extends IdIn<Ops> ? (T extends string ? OperationIn<Ops, T> : T) : T;

/** Stands for an id that none of the operations in its namespace has; `Known` are theirs. */
export interface NoSuchOperation<Known extends string> {
  readonly "no operation has this id; there are": Known;
}

/**
 * What may be called: an operation itself, an id of `Ops` or `OperationMap`, one of another namespace, and one that is known at run time alone.
 * A literal id in a namespace of `Ops` that is not there is none of these.
 */
export type Callable<Ops extends readonly AnyOperation[], T> = T extends string
  ? string extends T
    ? T
    : T extends IdIn<Ops> | keyof OperationMap
      ? T
      : T extends `${NamespaceIn<Ops>}.${string}`
        ? IsLiteral<T> extends true
          ? T & NoSuchOperation<IdIn<Ops>>
          : T
        : T
  : T;

/** Tells a literal from a pattern such as `math.${string}`. */
type IsLiteral<T extends string> = Record<never, never> extends Record<T, 1> ? false : true;

/** The arguments after the target of a call; the input may be left out where `undefined` is one. */
export type CallArguments<T, Options> =
  undefined extends InputOf<T>
    ? [input?: InputOf<T>, options?: Options]
    : [input: InputOf<T>, options?: Options];
