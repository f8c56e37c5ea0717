import type { DecodeAnswer, DecodedView } from "../../protocol.ts";
import type { Tone } from "../parts/controls.tsx";
import { showCount } from "../parts/show.ts";

/** What a format is called. */
export const FORMAT_WORDS: Readonly<Record<DecodedView["format"], string>> = {
  "tool-envelope": "ToolEnvelope V1",
  "tiered-envelope": "Tiered response envelope V1.0",
  "status-envelope": "Structured tool response",
  mcp: "MCP's own result",
  "response-envelope": "Waybill's ResponseEnvelope",
  "json-rpc-error": "A call that failed",
  "call-error": "A call that failed",
  problem: "A problem document",
  ambiguous: "More than one format fits",
};

/** Says how a result was wrapped. */
export function wrappingWords(wrapping: string): string {
  return wrapping === "none" ? "the result as it is" : wrapping.replaceAll("-", " ");
}

/** Says in a word how a result went, and in which colour. */
export function outcomeWords({
  format,
  isError,
}: Pick<DecodedView, "format" | "isError">): readonly [tone: Tone, word: string] {
  if (!isError) return ["ok", "ok"];
  return /error|problem/.test(format) ? ["bad", "the call failed"] : ["warn", "tool error"];
}

/** Says in one line what was found. */
export function answerWords({ results }: DecodeAnswer): string {
  const [first] = results;
  if (first === undefined) return "There is no result in it.";
  const odd = results.reduce((sum, result) => sum + result.odd.length, 0);
  const what = results.length === 1 ? FORMAT_WORDS[first.format] : showCount(results.length, "result");
  return `${what}, ${odd === 0 ? "nothing" : showCount(odd, "thing")} odd.`;
}
