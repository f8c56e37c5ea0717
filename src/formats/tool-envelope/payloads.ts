import { type ErrorCategory, errorTraits } from "../../core/errors/error-codes.ts";
import { detailsToSend, toCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { Type } from "../../core/typed-schema/type.ts";

/** The nine categories of error a tool envelope knows; consumers tolerate others. */
export const MCP_ERROR_CATEGORIES = [
  "validation",
  "execution",
  "timeout",
  "model",
  "network",
  "authorization",
  "rate_limit",
  "not_found",
  "internal",
] as const satisfies readonly ErrorCategory[];

/** A category of error: one of the nine, or one that came later. */
export type McpErrorCategory = ErrorCategory | (string & {});

/** One thing a workflow does. */
export interface WorkflowStep {
  /** What kind of step, such as `implement` or `review`. */
  readonly kind: string;
  readonly label: string;
  readonly summary: string;
}

/** What a workflow instruction answers with. */
export interface WorkflowEnvelopePayload {
  readonly displayName: string;
  readonly instructionId: string;
  readonly model: { readonly id: string; readonly label: string };
  readonly steps: WorkflowStep[];
  /** Open objects, kept verbatim. */
  readonly recommendations: Record<string, unknown>[];
  /** Open objects, kept verbatim. */
  readonly artifacts: Record<string, unknown>[];
}

/** What a tool answers with when it fails. */
export interface McpErrorPayload {
  readonly category: McpErrorCategory;
  readonly code: string;
  readonly message: string;
  readonly details?: string;
  /** Whether trying again is worth it. */
  readonly recoverable: boolean;
  readonly suggestedAction?: string;
  /** The tool to call next. */
  readonly nextTool?: string;
}

const Open = Type.Record(Type.String(), Type.Unknown());

/** Describes a `WorkflowEnvelopePayload`; unknown fields are tolerated. */
export const WorkflowEnvelopePayloadSchema = Type.Object({
  displayName: Type.String(),
  instructionId: Type.String(),
  model: Type.Object({ id: Type.String(), label: Type.String() }),
  steps: Type.Array(Type.Object({ kind: Type.String(), label: Type.String(), summary: Type.String() })),
  recommendations: Type.Array(Open),
  artifacts: Type.Array(Open),
});

/** Describes a `McpErrorPayload`; unknown fields and categories are tolerated. */
export const McpErrorPayloadSchema = Type.Object({
  category: Type.String(),
  code: Type.String(),
  message: Type.String(),
  details: Type.Optional(Type.String()),
  recoverable: Type.Boolean(),
  suggestedAction: Type.Optional(Type.String()),
  nextTool: Type.Optional(Type.String()),
});

/** Tells whether a payload says that the tool failed: the four fields every error has, of the right type. */
export function isMcpErrorPayload(payload: unknown): payload is McpErrorPayload {
  if (!isPlainObject(payload)) return false;
  return (
    isOwn(payload, "category", "string") &&
    isOwn(payload, "code", "string") &&
    isOwn(payload, "message", "string") &&
    isOwn(payload, "recoverable", "boolean")
  );
}

function isOwn(value: Record<string, unknown>, key: string, type: "string" | "boolean"): boolean {
  return Object.hasOwn(value, key) && typeof value[key] === type;
}

/** What `toErrorPayload` may be told beyond the error. */
export interface ErrorPayloadOptions {
  /** Puts the stack of the original failure into `details`; only while debugging. @default false */
  readonly debug?: boolean;
  readonly suggestedAction?: string;
  readonly nextTool?: string;
}

/** Turns anything thrown into the payload of an error envelope; foreign text and stacks stay out unless debugging. */
export function toErrorPayload(thrown: unknown, options: ErrorPayloadOptions = {}): McpErrorPayload {
  const { debug = false, suggestedAction, nextTool } = options;
  const error = toCallError(thrown);
  const details = debug ? stackOf(error.cause ?? error) : detailsText(detailsToSend(error));
  return {
    category: errorTraits(error.code).category,
    code: error.code,
    message: error.message,
    ...(details !== undefined && { details }),
    recoverable: error.retryable || error.correctable,
    ...(suggestedAction !== undefined && { suggestedAction }),
    ...(nextTool !== undefined && { nextTool }),
  };
}

function detailsText(details: unknown): string | undefined {
  return details === undefined || typeof details === "string" ? details : JSON.stringify(details);
}

function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? String(thrown.stack) : String(thrown);
}
