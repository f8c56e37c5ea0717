import type { ResponseEnvelope } from "../envelope/envelope.ts";

const MAX_REASON = 500;

/** An operation that ran and reported an error, as the client throws it: with the whole envelope. */
export class ToolResultError extends Error {
  override readonly name = "ToolResultError";
  readonly envelope: ResponseEnvelope;
  readonly operationId: string;
  /** Why, for programs; absent when the answer does not say. */
  readonly code: string | undefined;
  readonly details: unknown;

  constructor(envelope: ResponseEnvelope, operationId: string) {
    const { details, ...facts } = envelope.meta.waybill ?? {};
    const code = typeof facts.code === "string" ? facts.code : undefined;
    const told = facts.message ?? facts.said?.summary;
    const message = typeof told === "string" ? told : textOf(envelope);
    const reason = message.slice(0, MAX_REASON);
    super(
      `"${operationId}" answered with an error${code === undefined ? "" : ` (${code})`}${reason && `: ${reason}`}`,
    );
    this.envelope = envelope;
    this.operationId = operationId;
    this.code = code;
    this.details = details;
  }
}

/** What a tool says about its error in plain text, if it does. */
function textOf({ data, meta }: ResponseEnvelope): string {
  if (typeof data === "string") return data;
  const block = meta.source === "mcp" ? meta.content.find(({ type }) => type === "text") : undefined;
  return block?.type === "text" ? block.text : "";
}
