import type { MCPContentBlock } from "../../core/envelope/content-block.ts";
import { isResultFacts, isSaidFacts } from "../../core/envelope/is-response-envelope.ts";
import type { PageFacts, SaidFacts } from "../../core/envelope/response-meta.ts";
import { isErrorCode } from "../../core/errors/error-codes.ts";
import { toErrorDetails } from "../../core/errors/error-details.ts";
import { toJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type {
  ErrorDeclaration,
  GatedFeature,
  OperationType,
  Tier,
} from "../../core/operation/operation-types.ts";
import { isSemanticVersion } from "../../core/operation/semantic-version.ts";
import { RESULT_META_KEY } from "../../core/result/call-tool-result.ts";
import { isSaidCode } from "../../core/result/said.ts";
import { MAX_ISSUES } from "../../core/schema/limits.ts";
import type { SchemaIssue } from "../../core/schema/schema-issue.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { OPERATION_META_KEY } from "../meta-keys.ts";
import { splitId } from "../names.ts";

/** What a tool says of the operation behind it. */
export interface OperationFacts {
  readonly namespace: string;
  readonly name: string;
  readonly type: OperationType;
  readonly version: string;
  readonly tags?: readonly string[];
  readonly errors?: readonly ErrorDeclaration[];
  readonly tier?: Tier;
  readonly features?: readonly GatedFeature[];
  readonly served: ServedFacts;
}

/** How Waybill serves an operation, where the tool alone would not tell. */
export interface ServedFacts {
  /** The input is the member `input` of the arguments. */
  readonly wrapsInput: boolean;
  /** Structured content is `{ result: data }`, and the output schema says so. */
  readonly wrapsResult: boolean;
  /** No input schema is declared, whatever the tool has for one. */
  readonly takesAnything: boolean;
  /** It is a query or subscription whose own annotations say that it only reads. */
  readonly declaresReadOnly: boolean;
}

/** What a result says of how it came about. */
export interface OutcomeFacts {
  readonly outcome: "tool-error" | "call-error";
  readonly code?: string;
  readonly message?: string;
  readonly details?: unknown;
  readonly retryable?: boolean;
  readonly correctable?: boolean;
}

const TYPES: readonly unknown[] = ["query", "mutation", "subscription"];
const TIERS: readonly unknown[] = ["community", "pro", "enterprise"];
/** What an operation may declare; a tool error may have any other code too. */
const CODE = /^[A-Za-z][A-Za-z0-9_.-]{0,99}$/;
/** Characters of what a server says for people: in an envelope, and as the message of an error that is thrown here. */
const MESSAGE_LENGTH = { "tool-error": 8_192, "call-error": 500 } as const;
/** Characters of each part of a violation. */
const ISSUE_LENGTH = 8_192;
const CURSOR_LENGTH = 8_192;
const PAGE_INPUT_LENGTH = 65_536;
const MOST_DECLARED = 1_000;

/** Reads what a tool says of its operation; nothing where it says nothing that holds together. */
export function readOperationFacts(meta: unknown): OperationFacts | undefined {
  const facts = memberOf(meta, OPERATION_META_KEY);
  const id = splitId(facts?.["id"]);
  if (facts === undefined || id === undefined) return undefined;
  const { type, version, tags, tier, features } = facts;
  if (!TYPES.includes(type) || !isSemanticVersion(version)) return undefined;
  const errors = readErrors(facts["errors"]);
  return {
    ...id,
    type: type as OperationType,
    version,
    ...(isStrings(tags) && { tags }),
    ...(errors.length > 0 && { errors }),
    ...(TIERS.includes(tier) && { tier: tier as Tier }),
    ...(Array.isArray(features) && { features: features as readonly GatedFeature[] }),
    served: {
      wrapsInput: facts["wrapsInput"] === true,
      wrapsResult: facts["wrapsResult"] === true,
      takesAnything: facts["takesAnything"] === true,
      declaresReadOnly: facts["declaresReadOnly"] === true,
    },
  };
}

/** Reads the outcome of a result that says it is an error; a call error whose code nobody knows is no more than that. */
export function readOutcomeFacts(meta: unknown, declared: ReadonlySet<string>): OutcomeFacts | undefined {
  const facts = memberOf(meta, RESULT_META_KEY);
  if (facts === undefined) return undefined;
  const { outcome, code, message, details, retryable, correctable } = facts;
  if (outcome !== "tool-error" && outcome !== "call-error") return undefined;
  const isKnown = typeof code === "string" && (isErrorCode(code) || declared.has(code));
  if (outcome === "call-error" && !isKnown) return undefined;
  const bounded = toErrorDetails(details);
  return {
    outcome,
    ...(isSaidCode(code) && { code }),
    ...(typeof message === "string" && { message: cutMessage(message, MESSAGE_LENGTH[outcome]) }),
    ...(bounded !== undefined && { details: bounded }),
    ...(typeof retryable === "boolean" && { retryable }),
    ...(typeof correctable === "boolean" && { correctable }),
  };
}

/** Reads where the next page is; a cursor of more than 8_192 characters is none. */
export function readPage(meta: unknown): PageFacts | undefined {
  const page = memberOf(meta, RESULT_META_KEY)?.["page"];
  if (!isPlainObject(page)) return undefined;
  const next = Object.hasOwn(page, "next") ? page["next"] : undefined;
  if (next === undefined) return {};
  if (typeof next !== "string" || next.length > CURSOR_LENGTH) return undefined;
  const input = Object.hasOwn(page, "input") ? page["input"] : undefined;
  return input === undefined || isTooLong(input) ? { next } : { next, input };
}

/** Reads what the operation said beyond its data; its own blocks are those of the content that the result names. */
export function readSaid(meta: unknown, content: readonly MCPContentBlock[]): SaidFacts | undefined {
  const facts = memberOf(meta, RESULT_META_KEY);
  const said = facts?.["said"];
  if (facts === undefined || !isSaidFacts(said)) return undefined;
  const { blocks } = facts;
  const places = new Set<unknown>(Array.isArray(blocks) ? blocks : []);
  const shown = content.filter((_, index) => places.has(index));
  return { ...said, content: shown };
}

/** Reads how a result of Waybill's misses the schema of its operation; more than `MAX_ISSUES` are cut. */
export function readViolations(meta: unknown): readonly SchemaIssue[] | undefined {
  const violations = memberOf(meta, RESULT_META_KEY)?.["violations"];
  if (!Array.isArray(violations) || violations.length === 0) return undefined;
  const facts = { violations: violations.slice(0, MAX_ISSUES) };
  if (!isResultFacts(facts)) return undefined;
  return facts.violations?.map(({ pointer, expected, found }) => ({
    pointer: cutMessage(pointer, ISSUE_LENGTH),
    expected: cutMessage(expected, ISSUE_LENGTH),
    found: cutMessage(found, ISSUE_LENGTH),
  }));
}

function isTooLong(input: unknown): boolean {
  const text = toJsonTextOrNone(input);
  return text === undefined || text.length > PAGE_INPUT_LENGTH;
}

/** Tells whether a result says that its structured content is `{ result: data }`, because its client takes objects alone. */
export function readWrapsResult(meta: unknown): boolean {
  return memberOf(meta, RESULT_META_KEY)?.["wrapsResult"] === true;
}

/** The wire form of data that plain JSON cannot hold, where a result carries one. */
export function readWire(meta: unknown): { readonly wire: unknown } | undefined {
  const facts = memberOf(meta, RESULT_META_KEY);
  return facts !== undefined && Object.hasOwn(facts, "wire") ? { wire: facts["wire"] } : undefined;
}

function cutMessage(message: string, length: number): string {
  const isPair = message.length > length && /[\uD800-\uDBFF]/.test(message.charAt(length - 1));
  return cleanText(message.slice(0, isPair ? length - 1 : length)).text;
}

function readErrors(value: unknown): readonly ErrorDeclaration[] {
  if (!Array.isArray(value) || value.length > MOST_DECLARED) return [];
  return value.flatMap((entry: unknown) => {
    const { code, description, schema, httpStatus } = isPlainObject(entry) ? entry : {};
    if (typeof code !== "string" || !CODE.test(code)) return [];
    const isStatus =
      Number.isInteger(httpStatus) && (httpStatus as number) >= 400 && (httpStatus as number) < 600;
    const isSchema = typeof schema === "boolean" || isPlainObject(schema);
    return [
      {
        code,
        ...(typeof description === "string" && { description: cleanText(description).text }),
        ...(isSchema && { schema: schema as NonNullable<ErrorDeclaration["schema"]> }),
        ...(isStatus && { httpStatus: httpStatus as number }),
      },
    ];
  });
}

function memberOf(meta: unknown, key: string): Record<string, unknown> | undefined {
  if (!isPlainObject(meta) || !Object.hasOwn(meta, key)) return undefined;
  const member = meta[key];
  return isPlainObject(member) ? member : undefined;
}

function isStrings(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) && value.length <= MOST_DECLARED && value.every((item) => typeof item === "string")
  );
}
