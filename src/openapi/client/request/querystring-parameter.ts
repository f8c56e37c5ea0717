import { mediaKindOf, parseSendableType } from "../../media-types.ts";
import type { ParameterPlan } from "../plan.ts";
import { escapeText } from "./escape.ts";
import { createFormWriter } from "./form-body.ts";
import { jsonTextOf } from "./json-input.ts";
import { memberText } from "./parameter-value.ts";
import type { PairWriter } from "./query-parameter.ts";

/** Makes what writes a parameter that is all of the query (OpenAPI 3.2): a form, or one escaped text. */
export function createQuerystringWriter({ key, contentType }: ParameterPlan): PairWriter {
  const kind = mediaKindOf(parseSendableType(contentType ?? "")?.essence ?? "");
  const writeForm = createFormWriter(key, undefined);
  return (value, pairs) => {
    if (kind === "json") pairs.push(escapeText(jsonTextOf(value, key), key));
    else if (typeof value !== "object" || kind === "text" || kind === "events")
      pairs.push(escapeText(memberText(value, key), key));
    else {
      const form = writeForm(value);
      if (form !== "") pairs.push(form);
    }
  };
}
