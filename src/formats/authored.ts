import {
  type AuthoredResult,
  authoredEnvelope,
  markAuthored,
  type ObtainedFrom,
  type ResponseEnvelope,
  type ResultFacts,
} from "../core/envelope/envelope.ts";
import { isPlainObject } from "../core/json/json-value.ts";
import { type ToolResult, toFacts } from "../core/result/tool-result.ts";
import type { Decoded } from "./codec.ts";

/** Marks what a format's own helper made: returned from a handler, it has the outcome, data and words that `decode` finds in it. */
export function markResult<T, V extends object>(value: V, decode: () => Decoded): V & AuthoredResult<T> {
  const marked = markAuthored(value, () => {
    const { result, obtained } = decode();
    return toLocalEnvelope(result, obtained);
  });
  return marked as V & AuthoredResult<T>;
}

/** Makes the envelope of the operation whose handler said all this: who answered, to whom and how fast is the call's to say. */
export function toLocalEnvelope(result: ToolResult, obtained: ObtainedFrom): ResponseEnvelope {
  const { isError, data } = result;
  const { message, code = errorCodeIn(result), details, said } = toFacts(result, { content: true }) ?? {};
  const facts: ResultFacts = {
    obtained,
    ...(message !== undefined && { message }),
    ...(code !== undefined && { code }),
    ...(details !== undefined && { details }),
    ...(said !== undefined && { said }),
  };
  return authoredEnvelope(data, facts, { isError });
}

/** The status envelope has no field for the code of an error; its document puts it into the data. */
function errorCodeIn({ isError, data }: ToolResult): string | undefined {
  const code =
    isError && isPlainObject(data) && Object.hasOwn(data, "errorCode") ? data["errorCode"] : undefined;
  return typeof code === "string" ? code : undefined;
}
