import { isObject } from "../../../core/schema/json-schema.ts";

type Fields = Record<string, unknown>;

const URLENCODED = "application/x-www-form-urlencoded";
const MULTIPART = "multipart/form-data";

/** Says what Swagger 2.0 leaves to be understood, and its upgrade does not: which form is sent, and how lists are written in it. */
export function mendSwagger(operation: Fields, notes: Set<string>): void {
  const parameters = operation["parameters"] as Fields[];
  operation["parameters"] = parameters.filter(
    (one) => one["in"] !== "formData" || one["name"] !== "__proto__",
  );
  const form = parameters.filter((parameter) => parameter["in"] === "formData");
  for (const parameter of form) {
    if (parameter["type"] === "array") parameter["collectionFormat"] ??= "csv";
  }
  for (const { collectionFormat, name } of parameters) {
    if (collectionFormat === "tsv")
      notes.add(
        `The list ${JSON.stringify(name)} is separated by tabs, which is not supported; commas are used.`,
      );
  }
  if (form.length > 0) operation["consumes"] = formTypes(operation["consumes"] as string[], form);
}

function formTypes(consumes: readonly string[], form: readonly Fields[]): string[] {
  if (form.some(({ type }) => type === "file")) return [MULTIPART];
  const types = consumes.filter((type) => type === URLENCODED || type === MULTIPART);
  return types.length > 0 ? types : [URLENCODED];
}

/** Says what the upgrade of Swagger 2.0 forgets: that a form with required fields is itself required. */
export function mendUpgraded(operation: Fields): void {
  const body = operation["requestBody"];
  if (!isObject(body) || !isObject(body["content"])) return;
  for (const type of [URLENCODED, MULTIPART]) {
    const media = body["content"][type];
    const schema = isObject(media) ? media["schema"] : undefined;
    const required = isObject(schema) ? schema["required"] : undefined;
    if (Array.isArray(required) && required.length > 0) body["required"] = true;
  }
}
