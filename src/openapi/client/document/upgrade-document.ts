import { upgradeFromTwoToThree } from "@scalar/openapi-upgrader/2.0-to-3.0";
import { upgradeFromThreeToThreeOne } from "@scalar/openapi-upgrader/3.0-to-3.1";
import { isObject } from "../../../core/schema/json-schema.ts";

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
