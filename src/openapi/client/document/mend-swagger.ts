import { isObject } from "../../../core/schema/json-schema.ts";

type Fields = Record<string, unknown>;

const URLENCODED = "application/x-www-form-urlencoded";
const MULTIPART = "multipart/form-data";

/** What stands between the items of a list, by `collectionFormat`. */
const SEPARATORS: ReadonlyMap<unknown, string> = new Map([
  ["csv", ","],
  ["ssv", " "],
  ["tsv", "\t"],
  ["pipes", "|"],
]);

/** Separators of lists that are written as one text, by place and name. */
export type ListSeparators = ReadonlyMap<string, string>;

/** Says what Swagger 2.0 leaves to be understood, and its upgrade does not: which form is sent, and how lists are written in it. */
export function mendSwagger(operation: Fields, notes: Set<string>): ListSeparators {
  const parameters = operation["parameters"] as Fields[];
  operation["parameters"] = parameters.filter(
    (one) => one["in"] !== "formData" || one["name"] !== "__proto__",
  );
  const form = parameters.filter((parameter) => parameter["in"] === "formData");
  const lists = new Map<string, string>();
  for (const parameter of parameters) {
    if (parameter["type"] !== "array") continue;
    const separator = separatorOf(parameter, notes);
    if (separator !== undefined) lists.set(`${parameter["in"]} ${parameter["name"]}`, separator);
    if (parameter["in"] === "formData") parameter["collectionFormat"] ??= "csv";
  }
  if (form.length > 0) operation["consumes"] = formTypes(operation["consumes"] as string[], form);
  return lists;
}

/** Nothing for a list whose items are repeated. */
function separatorOf(
  { collectionFormat = "csv", in: place, name }: Fields,
  notes: Set<string>,
): string | undefined {
  if (collectionFormat === "multi" && (place === "query" || place === "formData")) return undefined;
  const separator = SEPARATORS.get(collectionFormat);
  if (separator === undefined) {
    const said = JSON.stringify(collectionFormat);
    notes.add(
      `The list ${JSON.stringify(name)} has the collectionFormat ${said}, which its place does not have; commas are used.`,
    );
  }
  return separator ?? ",";
}

function formTypes(consumes: readonly string[], form: readonly Fields[]): string[] {
  if (form.some(({ type }) => type === "file")) return [MULTIPART];
  const types = consumes.filter((type) => type === URLENCODED || type === MULTIPART);
  return types.length > 0 ? types : [URLENCODED];
}

/** Says what the upgrade of Swagger 2.0 forgets: that a form with required fields is itself required, and what separates items. */
export function mendUpgraded(operation: Fields, lists: ListSeparators): void {
  for (const parameter of Array.isArray(operation["parameters"])
    ? (operation["parameters"] as Fields[])
    : []) {
    const separator = lists.get(`${parameter["in"]} ${parameter["name"]}`);
    if (separator !== undefined) separate(parameter, separator);
  }
  const body = operation["requestBody"];
  if (!isObject(body) || !isObject(body["content"])) return;
  for (const type of [URLENCODED, MULTIPART]) {
    const media = body["content"][type];
    if (!isObject(media)) continue;
    if (asksForFields(media)) body["required"] = true;
    mendForm(media, type === MULTIPART, lists);
  }
}

/** Leaves it to the style where that says as much. */
function separate(parameter: Fields, separator: string): void {
  const { in: place, style } = parameter;
  parameter["explode"] = false;
  const isQuery = place === "query";
  if (separator === "," || (isQuery && (style === "spaceDelimited" || style === "pipeDelimited"))) return;
  parameter["style"] = isQuery ? "form" : "simple";
  parameter["separator"] = separator;
}

function asksForFields({ schema }: Fields): boolean {
  const required = isObject(schema) ? schema["required"] : undefined;
  return Array.isArray(required) && required.length > 0;
}

function mendForm(media: Fields, isMultipart: boolean, lists: ListSeparators): void {
  const properties = isObject(media["schema"]) ? media["schema"]["properties"] : undefined;
  const encoding: Fields = isObject(media["encoding"]) ? { ...media["encoding"] } : {};
  for (const name of Object.keys(isObject(properties) ? properties : {})) {
    const separator = lists.get(`formData ${name}`);
    if (separator === undefined) continue;
    const field: Fields = isObject(encoding[name]) ? { ...encoding[name], in: "query" } : { in: "query" };
    separate(field, separator);
    // A part has no style that would say so.
    if (isMultipart) field["separator"] = separator;
    else field["style"] ??= "form";
    encoding[name] = field;
  }
  if (Object.keys(encoding).length > 0) media["encoding"] = encoding;
}
