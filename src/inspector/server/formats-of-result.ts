import { adoptEnvelope, isResponseEnvelope } from "../../core/envelope/envelope.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { FormatName, ToolResult } from "../../core/result/tool-result.ts";
import { FORMAT_NAMES, FORMATS, isFormatError } from "../../formats/index.ts";
import { differences } from "../../formats/residual.ts";
import { encodeWithLosses } from "../../formats/transcode.ts";
import type { DifferenceView, FormatsAnswer, FormatView } from "../protocol.ts";
import { countValues } from "./count-values.ts";
import { badRequest, tooManyValues } from "./failure-of.ts";
import { MOST_LOOKED_VALUES, MOST_RESULT_CHARACTERS } from "./inspector-limits.ts";

/** Characters that are told of what is lost or made up; pages show less. */
const MOST_TOLD = 200;

/** Says how a result reads in each format, what each would lose, and what it would make up. */
export function formatsOfResult(envelope: unknown, operation: string | undefined): FormatsAnswer {
  if (countValues(envelope, MOST_LOOKED_VALUES) > MOST_LOOKED_VALUES) throw tooManyValues("The result");
  if (!isResponseEnvelope(envelope)) {
    throw badRequest('This is no envelope: it has "data", and "meta" as its source wants it.');
  }
  const { result } = FORMATS["response-envelope"].decode(adoptEnvelope(envelope));
  return { formats: FORMAT_NAMES.map((format) => viewOf(result, format, operation)) };
}

function viewOf(result: ToolResult, format: FormatName, tool = result.tool): FormatView {
  try {
    const codec = FORMATS[format];
    const named: ToolResult = tool === undefined ? result : { ...result, tool };
    let told: Pick<FormatView, "lost" | "madeUp"> = { lost: [], madeUp: [] };
    // What is made up may be another each time: it is read from the very text that is shown.
    const encoded = encodeWithLosses(named, format, (carrier) => {
      const back = codec.decode(carrier).result;
      const losses = differences(named, back);
      told = tellDifferences(result, back, losses);
      return losses;
    });
    const text = JSON.stringify(encoded);
    const view = { format, bytes: Buffer.byteLength(text), ...told };
    if (text.length > MOST_RESULT_CHARACTERS) return { ...view, refused: "It is too long to be shown." };
    return { ...view, encoded };
  } catch (thrown) {
    if (!isFormatError(thrown)) throw thrown;
    return { format, refused: thrown.message, lost: [], madeUp: [] };
  }
}

/** Tells what the result said and is lost from what it never said and is there. A name that we gave it is neither. */
function tellDifferences(
  result: ToolResult,
  back: ToolResult,
  pointers: readonly string[],
): Pick<FormatView, "lost" | "madeUp"> {
  const lost: DifferenceView[] = [];
  const madeUp: DifferenceView[] = [];
  for (const pointer of pointers) {
    const had = valueAt(result, pointer);
    const told = JSON.stringify(had === undefined ? valueAt(back, pointer) : had);
    if (told === undefined) continue;
    (had === undefined ? madeUp : lost).push({ pointer, text: told.slice(0, MOST_TOLD) });
  }
  return { lost, madeUp };
}

/** Reads a field, or a member of one: pointers of differences lead no deeper. */
function valueAt(result: ToolResult, pointer: string): unknown {
  let value: unknown = result;
  for (const name of pointer.split("/").slice(1)) {
    value = isPlainObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}
