import { counted } from "../parts/show.ts";
import { type JsonObject, showShort } from "./json-value.ts";

/** Formats that inputs of their own show. */
const SEEN = /^(|date|password|binary|byte)$/;

/** Says the rules of a schema in words. */
export function hintsOf(keywords: JsonObject): readonly string[] {
  const { pattern, format, multipleOf, uniqueItems, default: preset } = keywords;
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below } = keywords;
  return [
    between(keywords["minLength"], keywords["maxLength"], "character"),
    // Draft 4 says with `true` that a limit itself is out.
    above === true ? limit("more than", minimum) : limit("more than", above),
    below === true ? limit("less than", maximum) : limit("less than", below),
    between(above === true ? undefined : minimum, below === true ? undefined : maximum),
    multipleOf === 1 ? "" : limit("a multiple of", multipleOf),
    between(keywords["minItems"], keywords["maxItems"], "item"),
    uniqueItems === true ? "no item twice" : "",
    between(keywords["minProperties"], keywords["maxProperties"], "member"),
    typeof format === "string" && !SEEN.test(format) ? `format ${showShort(format)}` : "",
    typeof pattern === "string" ? `pattern ${showShort(pattern, 200)}` : "",
    Object.hasOwn(keywords, "default") ? `default ${preset === "" ? "empty text" : showShort(preset)}` : "",
  ].filter((hint) => hint !== "");
}

function limit(words: string, value: unknown, noun?: string): string {
  if (typeof value !== "number") return "";
  return `${words} ${noun === undefined ? value : counted(value, noun)}`.trim();
}

/** No count is less than nothing. */
function between(min: unknown, max: unknown, noun?: string): string {
  const least = noun !== undefined && min === 0 ? undefined : min;
  if (typeof least !== "number") return limit("at most", max, noun);
  if (typeof max !== "number") return limit("at least", least, noun);
  return limit(least === max ? "exactly" : `${least} to`, max, noun);
}
