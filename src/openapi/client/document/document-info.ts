import { isSemanticVersion } from "../../../core/operation/semantic-version.ts";
import { isObject } from "../../../core/schema/json-schema.ts";
import type { DocumentVersion } from "./upgrade-document.ts";

type Fields = Record<string, unknown>;

/** Other kinds of documents, by what only they have. */
const OTHERS: readonly (readonly [what: string, test: (document: Fields) => boolean])[] = [
  ["an AsyncAPI document", (document) => document["asyncapi"] !== undefined],
  ["an Arazzo document", (document) => document["arazzo"] !== undefined],
  [
    "an OpenAPI overlay; pass it as the overlay of a document",
    (document) => document["overlay"] !== undefined,
  ],
  [
    "a Swagger 1 document; convert it to OpenAPI 3 first",
    (document) => document["swaggerVersion"] !== undefined,
  ],
  ["a Postman collection; export it as OpenAPI", isPostman],
  ["a Google discovery document", (document) => String(document["kind"]).startsWith("discovery#")],
  [
    "a GraphQL schema",
    ({ data, __schema: schema }) => isObject(schema) || (isObject(data) && isObject(data["__schema"])),
  ],
  ["a HAR file", ({ log }) => isObject(log) && Array.isArray(log["entries"])],
  ["a RAML document", (document) => document["#%RAML"] !== undefined],
  ["a JSON Schema", ({ $schema }) => typeof $schema === "string" && $schema.includes("json-schema.org")],
];

function isPostman({ info, item }: Fields): boolean {
  return Array.isArray(item) || (isObject(info) && info["_postman_id"] !== undefined);
}

/** Tells how a document is to be read, or refuses it by saying what it is. */
export function versionOf(document: unknown, name: string): DocumentVersion {
  if (!isObject(document)) throw new TypeError(`${name} is not an OpenAPI document: it is no object.`);
  const { swagger, openapi } = document;
  if (swagger !== undefined && /^2(?:\.0)?$/.test(String(swagger))) return "2.0";
  const version = openapi === undefined ? undefined : String(openapi);
  if (version !== undefined && /^3\.0(?:\.|$|-)|^3$/.test(version)) return "3.0";
  if (version !== undefined && /^3\.\d/.test(version)) return "3.1";
  const said = version ?? (swagger === undefined ? undefined : String(swagger));
  if (said !== undefined) {
    throw new TypeError(`${name} is of version "${said.slice(0, 20)}"; OpenAPI 2.0 and 3.x can be read.`);
  }
  const other = OTHERS.find(([, test]) => test(document))?.[0];
  throw new TypeError(
    other === undefined
      ? `${name} is not an OpenAPI document: it has neither "openapi" nor "swagger".`
      : `${name} is not an OpenAPI document: this is ${other}.`,
  );
}

/** Makes a semantic version of what a document calls its version. */
export function semanticVersionOf(version: unknown): string {
  const text = typeof version === "number" ? String(version) : version;
  if (typeof text !== "string") return "0.0.0";
  const bare: string = text.trim().replace(/^v/i, "");
  if (isSemanticVersion(bare)) return bare;
  const numbers = /^(\d{1,9})(?:[.-](\d{1,9}))?(?:[.-](\d{1,9}))?/.exec(text.trim().replace(/^v/i, ""));
  if (numbers === null) return "0.0.0";
  return [1, 2, 3].map((place) => Number(numbers[place] ?? 0)).join(".");
}
