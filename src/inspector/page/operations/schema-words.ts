import { hintsOf } from "../form/hints.ts";
import { type JsonObject, ownOf } from "../form/json-value.ts";
import { typesOf } from "../form/read-schema.ts";
import { shortJson } from "../parts/json-text.ts";

const MOST_CHOICES = 12;
const MOST_CHARACTERS = 80;

const FLAGS = [
  ["additionalProperties", false, "no other members"],
  ["readOnly", true, "read only"],
  ["writeOnly", true, "write only"],
  ["deprecated", true, "deprecated"],
  ["nullable", true, "or null"],
] as const;

/** Says the type of what keywords take: `string`, `list of number`, `one of "a", "b"`; nothing is no value at all. */
export function schemaType(keywords: JsonObject | undefined): string {
  if (keywords === undefined) return "nothing";
  if (Object.hasOwn(keywords, "const")) return `always ${shortJson(keywords["const"], MOST_CHARACTERS)}`;
  const choices = ownOf(keywords, "enum");
  if (Array.isArray(choices)) {
    const shown = choices.slice(0, MOST_CHOICES).map((choice) => shortJson(choice, MOST_CHARACTERS));
    const rest = choices.length - shown.length;
    return `one of ${shown.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
  }
  const types = typesOf(keywords);
  return (types.length === 0 ? ["anything"] : types.slice(0, 8))
    .map((type) => (type === "array" ? listWords(keywords) : type.slice(0, MOST_CHARACTERS)))
    .join(" or ");
}

/** Says what else keywords ask for. */
export function schemaNotes(keywords: JsonObject = {}): readonly string[] {
  return [
    ...hintsOf(keywords),
    ...FLAGS.filter(([name, value]) => ownOf(keywords, name) === value).map(([, , words]) => words),
  ];
}

function listWords(keywords: JsonObject): string {
  const type = ownOf(ownOf(keywords, "items"), "type");
  return typeof type === "string" ? `list of ${type.slice(0, MOST_CHARACTERS)}` : "list";
}
