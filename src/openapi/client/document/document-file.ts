import { upgradeFromTwoToThree } from "@scalar/openapi-upgrader/2.0-to-3.0";
import { upgradeFromThreeToThreeOne } from "@scalar/openapi-upgrader/3.0-to-3.1";
import { isObject } from "../../../core/schema/json-schema.ts";

/** One file of a document. */
export interface DocumentFile {
  /** Absolute; empty for a document that was given as an object. */
  readonly url: string;
  readonly root: unknown;
}

/** A value, and the file whose references it speaks. */
export interface Located {
  readonly value: unknown;
  readonly file: DocumentFile;
  /** Where it stands: the same for the same place, however it is written. */
  readonly key: string;
}

/** Lists the references of a value that lead to other files, each once; takes circles and any depth. */
export function outwardReferences(root: unknown): Set<string> {
  const found = new Set<string>();
  forEachObject(root, (value) => {
    const reference = Object.hasOwn(value, "$ref") ? value["$ref"] : undefined;
    if (typeof reference === "string" && reference !== "" && !reference.startsWith("#")) found.add(reference);
  });
  return found;
}

/** Names of a file, by which its schemas may be found: `$anchor`, `$dynamicAnchor` and `$id`. */
export function namedSchemas(root: unknown): Map<string, unknown> {
  const names = new Map<string, unknown>();
  forEachObject(root, (value) => addNames(value, names));
  return names;
}

function forEachObject(root: unknown, visit: (value: Record<string, unknown>) => void): void {
  const seen = new Set<object>();
  const stack: unknown[] = [root];
  while (stack.length > 0) {
    const value = stack.pop();
    if (typeof value !== "object" || value === null || seen.has(value)) continue;
    seen.add(value);
    if (isObject(value)) visit(value);
    for (const member of Object.values(value)) if (typeof member === "object") stack.push(member);
  }
}

function addNames(schema: Record<string, unknown>, names: Map<string, unknown>): void {
  for (const keyword of ["$anchor", "$dynamicAnchor", "$id"]) {
    const name = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
    if (typeof name !== "string") continue;
    const key = keyword === "$id" ? name : `#${name}`;
    if (!names.has(key)) names.set(key, schema);
  }
}

/** The kinds of documents that are read in different ways; later ones are read like 3.1. */
export type DocumentVersion = "2.0" | "3.0" | "3.1";

/** Upgrades schemas by their names; takes the copies over, and changes them. */
export function upgradeSchemas(
  schemas: Record<string, unknown>,
  version: DocumentVersion,
): Record<string, unknown> {
  if (version === "3.1") return schemas;
  const upgraded = upgradeFromThreeToThreeOne({ openapi: "3.0.4", components: { schemas } });
  const components = (upgraded as Record<string, unknown>)["components"];
  const result = isObject(components) ? components["schemas"] : undefined;
  return isObject(result) ? result : {};
}

/** Upgrades one operation object without references; takes the copy over, and changes it. */
export function upgradeOperation(
  operation: Record<string, unknown>,
  version: DocumentVersion,
): Record<string, unknown> {
  if (version === "3.1") return operation;
  const start = version === "2.0" ? { swagger: "2.0" } : { openapi: "3.0.4" };
  const document = { ...start, paths: { "/": { post: operation } } };
  const upgraded: unknown = upgradeFromThreeToThreeOne(upgradeFromTwoToThree(document));
  let found: unknown = upgraded;
  for (const key of ["paths", "/", "post"]) found = isObject(found) ? found[key] : undefined;
  return isObject(found) ? found : {};
}
