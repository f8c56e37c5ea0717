import type { AuthoredResult } from "../../core/envelope/envelope.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { type ContentBlock, textBlock } from "../../core/result/call-tool-result.ts";
import { isBlank } from "../../core/result/human-text.ts";
import { markResult } from "../authored.ts";
import { layOut, statusEnvelopeCodec } from "./status-envelope-codec.ts";
import type { ComposeToolPayloadOptions, ToolPayload, ToolResponseMeta } from "./types.ts";

/** The longest summary hosts render well. */
const SUMMARY_CHARACTERS = 80;

/** Writes a reply: the headline, details, further text, next steps and links as blocks; the envelope for programs. */
export function composeToolPayload<T>(
  options: ComposeToolPayloadOptions<T>,
): ToolPayload<T> & AuthoredResult<T> {
  const { data, additionalText = [], resourceLinks = [], omitMetaDetails, omitNextSteps } = options;
  const meta = withoutUndefined(options.meta);
  assertMeta(meta);
  const { isError = meta.status === "error", onWarning = console.warn } = options;
  warnOfSummary(meta.summary, onWarning);
  if (isError && meta.status !== "error") {
    onWarning(
      `A tool response with isError says "${meta.status}"; some clients then check its data like a success.`,
    );
  }
  const texts = additionalText.filter((text) => !isBlank(text)).map(textBlock);
  const payload: ToolPayload<T> = {
    content: layOut(meta, [...texts, ...resourceLinks], { omitMetaDetails, omitNextSteps }) as ContentBlock[],
    // An envelope without data would be none.
    structuredContent: { meta, data: data === undefined ? (null as T) : data },
    isError,
  };
  return markResult(payload, () => statusEnvelopeCodec.decode(payload));
}

/** Optional fields are absent on the wire, not undefined. */
function withoutUndefined(meta: ToolResponseMeta): ToolResponseMeta {
  return Object.fromEntries(
    Object.entries(meta)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key, isPlainObject(value) ? withoutUndefined(value as never) : value]),
  ) as unknown as ToolResponseMeta;
}

/** Programs without types make these mistakes, and hosts would show them. */
function assertMeta({ status, summary }: ToolResponseMeta): void {
  if (!["ok", "error", "info", "warn"].includes(status)) {
    throw new TypeError(
      `meta.status must be "ok", "error", "info" or "warn"; it is ${JSON.stringify(status)}.`,
    );
  }
  if (typeof summary !== "string") throw new TypeError("meta.summary must be a string.");
}

function warnOfSummary(summary: string, warn: (message: string) => void): void {
  if (/[\r\n]/.test(summary)) warn("The summary of a tool response has a line break; hosts show one line.");
  else if ([...summary].length > SUMMARY_CHARACTERS) {
    warn(`The summary of a tool response is over ${SUMMARY_CHARACTERS} characters; hosts may cut it.`);
  }
}
