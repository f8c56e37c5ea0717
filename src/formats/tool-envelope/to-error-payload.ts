import { errorTraits } from "../../core/errors/error-codes.ts";
import { detailsToSend, toCallError } from "../../core/errors/errors.ts";
import type { McpErrorPayload } from "./payloads.ts";

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
