import { STATUS_CODES } from "node:http";
import { isSaidFacts } from "../../../core/envelope/envelope.ts";
import type { ResultFacts } from "../../../core/envelope/response-meta.ts";
import { type ErrorCode, isErrorCode } from "../../../core/errors/error-codes.ts";
import { toErrorDetails } from "../../../core/errors/error-details.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { isPlainObject, ownMember } from "../../../core/json/json-value.ts";
import { isSaidCode } from "../../../core/result/said.ts";
import type { SourceSecrets } from "../../../core/secrets/secret-mask.ts";
import { cleanText } from "../../../core/text/clean-text.ts";
import { truncateText } from "../../../core/text/truncate-text.ts";
import { fromWire } from "../../../core/wire/wire.ts";

/** What a problem that Waybill wrote stands for. */
export type HopOutcome =
  | { readonly outcome: "call-error"; readonly error: CallError }
  | { readonly outcome: "tool-error"; readonly data: unknown; readonly facts: ResultFacts };

/** Who reads a problem, and of whom. */
export interface HopReader {
  readonly operationId: string;
  /** Codes the operation declares. */
  readonly declared: ReadonlySet<string>;
  /** The document says that Waybill serves the operation. */
  readonly isServed: boolean;
  /** The server is one whose sentences are shown as if they were ours. */
  readonly isTrusted: boolean;
  /** The sentence for an error whose own is not shown. */
  readonly message: string;
  /** What of the server's words is passed on. */
  readonly secrets: SourceSecrets;
}

/** Characters of what a server says for people: in an envelope, and as the message of an error that is thrown here. */
const MESSAGE_LENGTH = { "tool-error": 8_192, "call-error": 500 } as const;

/** Reads the outcome out of a problem; nothing where it says nothing that holds together. */
export function readHopOutcome(problem: unknown, status: number, reader: HopReader): HopOutcome | undefined {
  const facts = isPlainObject(problem) ? ownMember(problem, "waybill") : undefined;
  if (!isPlainObject(problem) || !isPlainObject(facts)) return undefined;
  switch (ownMember(facts, "outcome")) {
    case "call-error":
      return { outcome: "call-error", error: toHopError(problem, status, reader) };
    case "tool-error":
      return readToolError(facts, reader.operationId);
    default:
      return undefined;
  }
}

/** Rebuilds the error a problem was made of. */
export function toHopError(problem: Record<string, unknown>, status: number, reader: HopReader): CallError {
  const code = ownMember(problem, "code");
  const isKnown = typeof code === "string" && (isErrorCode(code) || reader.declared.has(code));
  const detail = ownMember(problem, "detail");
  const isShown = reader.isTrusted && typeof detail === "string";
  const words = !isShown && typeof detail === "string" ? detail : undefined;
  const retryable = ownMember(problem, "retryable");
  const correctable = ownMember(problem, "correctable");
  return new CallError(
    isKnown ? code : codeOfStatus(status),
    isShown ? cleanMessage(detail, MESSAGE_LENGTH["call-error"]) : reader.message,
    {
      cause: problem,
      details: reader.secrets.passDetails(ownMember(problem, "details"), words),
      httpStatus: status,
      ...(typeof retryable === "boolean" && { retryable }),
      ...(typeof correctable === "boolean" && { correctable }),
      stack: false,
    },
  );
}

function readToolError(told: Record<string, unknown>, operationId: string): HopOutcome {
  return { outcome: "tool-error", data: readTold(told, operationId), facts: readToolFacts(told) };
}

/** Reads why an operation reported an error; a code that is none is left out. */
export function readToolFacts(told: Record<string, unknown>): ResultFacts {
  const code = ownMember(told, "code");
  const message = ownMember(told, "message");
  const details = toErrorDetails(ownMember(told, "details"));
  const said = ownMember(told, "said");
  return {
    ...(isSaidCode(code) && { code }),
    ...(typeof message === "string" && { message: cleanMessage(message, MESSAGE_LENGTH["tool-error"]) }),
    ...(details !== undefined && { details }),
    ...(isSaidFacts(said) && { said }),
  };
}

/** Reads data as Waybill writes it: exactly what it is in `wire`, or as plain JSON in `data`. */
export function readTold(told: Record<string, unknown>, operationId: string): unknown {
  return Object.hasOwn(told, "wire") ? readWire(told["wire"], operationId) : ownMember(told, "data");
}

/** Reads data in its wire form; what cannot be read is an invalid output, and what was wrong with it stays here. */
export function readWire(wire: unknown, operationId: string): unknown {
  try {
    return fromWire(wire, { code: "OUTPUT_INVALID" });
  } catch (cause) {
    throw new CallError(
      "OUTPUT_INVALID",
      `"${operationId}" answered with data whose wire form is malformed.`,
      {
        cause,
        stack: false,
      },
    );
  }
}

/** Makes text of a server fit to be shown. */
function cleanMessage(text: string, length: number): string {
  return cleanText(truncateText(text, length)).text;
}

const CODES: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  [400, "VALIDATION_ERROR"],
  [401, "UNAUTHENTICATED"],
  [402, "UPGRADE_REQUIRED"],
  [403, "ACCESS_DENIED"],
  [404, "NOT_FOUND"],
  [408, "TIMEOUT"],
  [409, "CONFLICT"],
  [410, "NOT_FOUND"],
  [412, "CONFLICT"],
  [413, "TOO_LARGE"],
  [422, "VALIDATION_ERROR"],
  [429, "RATE_LIMITED"],
  [501, "NOT_IMPLEMENTED"],
  [502, "UNAVAILABLE"],
  [503, "UNAVAILABLE"],
  [504, "TIMEOUT"],
  [507, "RESOURCE_EXHAUSTED"],
]);

/** Gives the code of an error status; one without a meaning of its own is a failed execution. */
export function codeOfStatus(status: number): ErrorCode {
  return CODES.get(status) ?? "EXECUTION_ERROR";
}

/** Writes a status with its standard phrase, such as `404 Not Found`; never with the server's. */
export function nameStatus(status: number): string {
  const phrase = STATUS_CODES[status];
  return phrase === undefined ? String(status) : `${status} ${phrase}`;
}
