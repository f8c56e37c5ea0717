import { isPlainObject } from "../../../core/json/json-value.ts";
import type { EncodingPlan, MediaPlan, ParameterPlan } from "../plan.ts";
import { checkWellFormed, escapeText } from "./escape.ts";
import { invalidInput } from "./invalid-input.ts";
import { isAbsent, memberText } from "./parameter-value.ts";
import { createQueryWriter, type PairWriter } from "./query-parameter.ts";

/** Makes what writes objects as `application/x-www-form-urlencoded`; text is taken to be that already. */
export function createFormWriter(key: string, encoding: MediaPlan["encoding"]): (value: unknown) => string {
  const writers = new Map<string, PairWriter>();
  for (const [name, plan] of Object.entries(encoding ?? {})) {
    writers.set(name, createQueryWriter(toParameter(key, name, plan)));
  }
  return (value) => {
    if (typeof value === "string") return checkWellFormed(value, key);
    if (!isPlainObject(value))
      throw invalidInput(key, "must be an object, each property a field of the form");
    const pairs: string[] = [];
    for (const [name, member] of Object.entries(value)) {
      if (isAbsent(member)) continue;
      const write = writers.get(name);
      if (write !== undefined) write(member, pairs);
      else for (const pair of plainPairs(name, member, key)) pairs.push(pair);
    }
    return pairs.join("&");
  };
}

/** Lists are repeated and objects are JSON, unless the document says otherwise. */
function* plainPairs(name: string, value: unknown, key: string): Generator<string> {
  const label = escapeText(name, key);
  for (const item of Array.isArray(value) ? value : [value]) {
    if (!isAbsent(item)) yield `${label}=${escapeText(memberText(item, key), key)}`;
  }
}

/** An encoding that says how to write is a query parameter's; one that names a media type alone is of that type. */
function toParameter(key: string, name: string, plan: EncodingPlan): ParameterPlan {
  const { style, explode, allowReserved, separator, contentType } = plan;
  const isStyled = [style, explode, allowReserved, separator].some((each) => each !== undefined);
  return {
    key,
    name,
    in: "query",
    required: false,
    style: style ?? "form",
    explode: explode ?? (style ?? "form") === "form",
    allowReserved: allowReserved ?? false,
    allowEmpty: false,
    schema: true,
    separator,
    contentType: isStyled ? undefined : contentType,
  };
}
