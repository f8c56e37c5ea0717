import { isErrorCode } from "../../core/errors/error-codes.ts";
import { toErrorDetails } from "../../core/errors/error-details.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type {
  ErrorDeclaration,
  GatedFeature,
  OperationType,
  Tier,
} from "../../core/operation/operation-types.ts";
import { isSemanticVersion } from "../../core/operation/semantic-version.ts";
import { RESULT_META_KEY } from "../../core/result/call-tool-result.ts";
import { cleanText } from "../clean-text.ts";
import { splitId } from "../names.ts";

/** The key of a tool's `_meta` under which Waybill describes the operation behind it. */
export const OPERATION_META_KEY = "dev.waybill/operation";

/** The key of a progress notification's `_meta` under which each value of a subscription rides. */
export const YIELD_META_KEY = "dev.waybill/yield";

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
  /** The input is the member `input` of the arguments. */
  readonly wrapsInput: boolean;
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
const CODE = /^[A-Za-z][A-Za-z0-9_.-]{0,99}$/;
const MESSAGE_LENGTH = 8_192;
const MOST_DECLARED = 1_000;

/** Reads what a tool says of its operation; nothing where it says nothing that holds together. */
export function readOperationFacts(meta: unknown): OperationFacts | undefined {
  const facts = memberOf(meta, OPERATION_META_KEY);
  const id = splitId(facts?.["id"]);
  if (facts === undefined || id === undefined) return undefined;
  const { type, version, tags, tier, features, wrapsInput } = facts;
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
    wrapsInput: wrapsInput === true,
  };
}

/** Reads the outcome of a result that says it is an error; a code nobody knows makes it no more than that. */
export function readOutcomeFacts(meta: unknown, declared: ReadonlySet<string>): OutcomeFacts | undefined {
  const facts = memberOf(meta, RESULT_META_KEY);
  if (facts === undefined) return undefined;
  const { outcome, code, message, details, retryable, correctable } = facts;
  if (outcome !== "tool-error" && outcome !== "call-error") return undefined;
  const isKnown = typeof code === "string" && (isErrorCode(code) || declared.has(code));
  if (outcome === "call-error" && !isKnown) return undefined;
  if (code !== undefined && !(typeof code === "string" && CODE.test(code))) return undefined;
  const bounded = toErrorDetails(details);
  return {
    outcome,
    ...(code !== undefined && { code }),
    ...(typeof message === "string" && { message: cleanText(message.slice(0, MESSAGE_LENGTH)).text }),
    ...(bounded !== undefined && { details: bounded }),
    ...(typeof retryable === "boolean" && { retryable }),
    ...(typeof correctable === "boolean" && { correctable }),
  };
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
