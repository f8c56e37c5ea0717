import { forEachSubschema, isObject, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { toPlainLine } from "./plain-line.ts";

const KEY = "x-mcp-header";

/** The names HTTP allows (RFC 9110, section 5.1). */
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** The types whose values can be written in a header; a number has more than one spelling. */
const MIRRORED_TYPES: ReadonlySet<unknown> = new Set(["string", "integer", "boolean"]);

/**
 * Says what is wrong with the `x-mcp-header` members of an input schema, if anything is: the 2026-07-28 revision has clients
 * leave out such tools over HTTP, as nobody could tell what is routed by those headers. The schema must not be nested deeply.
 */
export function findHeaderFault(inputSchema: unknown): string | undefined {
  return visit(inputSchema, [], true, new Set());
}

function visit(
  schema: unknown,
  path: readonly string[],
  isReachable: boolean,
  names: Set<string>,
): string | undefined {
  if (!isObject(schema)) return undefined;
  let fault = Object.hasOwn(schema, KEY) ? faultOf(schema, path, isReachable, names) : undefined;
  forEachSubschema(schema as JsonSchemaObject, (inner, keyword, key) => {
    const isProperty = keyword === "properties";
    fault ??= visit(inner, isProperty ? [...path, String(key)] : path, isReachable && isProperty, names);
  });
  return fault;
}

function faultOf(
  schema: Readonly<Record<string, unknown>>,
  path: readonly string[],
  isReachable: boolean,
  names: Set<string>,
): string | undefined {
  const where =
    path.length === 0 ? "its input" : `its property ${JSON.stringify(toPlainLine(path.join("."), 200))}`;
  if (!isReachable || path.length === 0) {
    return `The ${KEY} at ${where} stands where no property is that every input could have.`;
  }
  const name = schema[KEY];
  if (typeof name !== "string" || !HEADER_NAME.test(name)) {
    return `The ${KEY} of ${where} is no name that a header can have.`;
  }
  if (!MIRRORED_TYPES.has(schema["type"])) {
    return `The ${KEY} of ${where} is for a value that is no string, integer or boolean.`;
  }
  if (names.has(name.toLowerCase())) return `The ${KEY} of ${where} is that of another property too.`;
  names.add(name.toLowerCase());
  return undefined;
}
