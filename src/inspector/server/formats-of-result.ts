import { adoptEnvelope, isResponseEnvelope } from "../../core/envelope/envelope.ts";
import type { FormatName, ToolResult } from "../../core/result/tool-result.ts";
import { FORMAT_NAMES, FORMATS, isFormatError } from "../../formats/index.ts";
import { encodeWithLosses } from "../../formats/transcode.ts";
import type { FormatsAnswer, FormatView } from "../protocol.ts";
import { countValues } from "./count-values.ts";
import { badRequest, tooManyValues } from "./failure-of.ts";
import { MOST_LOOKED_VALUES, MOST_RESULT_CHARACTERS } from "./inspector-limits.ts";
import type { Breathe } from "./look-queue.ts";

/** Says how a result reads in each format, and what each would lose. */
export async function formatsOfResult(
  envelope: unknown,
  operation: string | undefined,
  breathe: Breathe,
): Promise<FormatsAnswer> {
  if (countValues(envelope, MOST_LOOKED_VALUES) > MOST_LOOKED_VALUES) throw tooManyValues("The result");
  if (!isResponseEnvelope(envelope)) {
    throw badRequest('This is no envelope: it has "data", and "meta" as its source wants it.');
  }
  const { result } = FORMATS["response-envelope"].decode(adoptEnvelope(envelope));
  const named: ToolResult = operation === undefined ? result : { ...result, tool: operation };
  const formats: FormatView[] = [];
  for (const format of FORMAT_NAMES) formats.push(await viewOf(named, format, breathe));
  return { formats };
}

async function viewOf(result: ToolResult, format: FormatName, breathe: Breathe): Promise<FormatView> {
  try {
    await breathe();
    const losses = FORMATS[format].losses(result);
    await breathe();
    const encoded = encodeWithLosses(result, format, () => losses);
    await breathe();
    const text = JSON.stringify(encoded);
    if (text.length > MOST_RESULT_CHARACTERS) {
      return { format, refused: "It is too long to be shown.", bytes: Buffer.byteLength(text), losses };
    }
    return { format, encoded, bytes: Buffer.byteLength(text), losses };
  } catch (thrown) {
    if (!isFormatError(thrown)) throw thrown;
    return { format, refused: thrown.message, losses: [] };
  }
}
