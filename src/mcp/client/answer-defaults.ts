import { isPlainObject } from "../../core/json/json-value.ts";

type Content = Readonly<Record<string, unknown>>;

/** Fills the fields that an accepted answer leaves out with the defaults that the question declares for them. */
export function withDefaults(content: Content | undefined, requestedSchema: unknown): Content | undefined {
  const properties = isPlainObject(requestedSchema) ? requestedSchema["properties"] : undefined;
  if (!isPlainObject(properties)) return content;
  const given = content ?? {};
  const missing = Object.entries(properties).filter(
    ([name, field]) =>
      name !== "__proto__" && (!Object.hasOwn(given, name) || given[name] === undefined) && hasDefault(field),
  );
  if (missing.length === 0) return content;
  const defaults = missing.map(([name, field]) => [name, (field as Content)["default"]]);
  return { ...given, ...Object.fromEntries(defaults) };
}

/** A default of another type than its field would be an answer that nobody could have given. */
function hasDefault(field: unknown): boolean {
  if (!isPlainObject(field) || !Object.hasOwn(field, "default")) return false;
  const value = field["default"];
  switch (field["type"]) {
    case "string":
    case "boolean":
      return typeof value === field["type"];
    case "number":
      return typeof value === "number";
    case "integer":
      return Number.isInteger(value);
    case "array":
      return Array.isArray(value) && value.every((item) => typeof item === "string");
    default:
      return false;
  }
}
