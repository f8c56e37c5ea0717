import { isPlainObject } from "../../core/json/json-value.ts";
import type {
  ErrorDeclaration,
  OperationAnnotations,
  OperationSpec,
  OperationType,
  Tier,
} from "../../core/operation/operation-types.ts";
import { isSemanticVersion } from "../../core/operation/semantic-version.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import type { ServedSchemas } from "./document/served-schemas.ts";
import type { DescribedOperation } from "./plan.ts";

/** What Waybill wrote into a document about an operation it serves, as far as it makes sense. */
export interface WaybillFacts {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  /** Where the input goes: into the query, or as the body. */
  readonly takes: "query" | "body";
  readonly spec: Partial<
    Pick<
      OperationSpec,
      "type" | "version" | "title" | "description" | "tags" | "annotations" | "errors" | "tier"
    >
  >;
  /** Reads the schema of the input. */
  inputSchema(): JsonSchema | undefined;
  /** Reads the schema of the data. */
  outputSchema(): JsonSchema | undefined;
}

/** What the document says of an operation that should not be used any more. */
export const DEPRECATED = Object.freeze({ deprecated: true });

const TYPES: readonly unknown[] = ["query", "mutation", "subscription"] satisfies OperationType[];
const TIERS: readonly unknown[] = ["community", "pro", "enterprise"] satisfies Tier[];
const HINTS = ["readOnly", "destructive", "idempotent", "openWorld"] satisfies (keyof OperationAnnotations)[];
const ID = /^([A-Za-z0-9_][A-Za-z0-9_-]{0,63})\.([A-Za-z0-9_][A-Za-z0-9_./-]{0,199})$/;
const ERROR_CODE = /^[A-Za-z][A-Za-z0-9_.-]{0,99}$/;

/** How an operation that Waybill serves is reached. */
const METHODS: Readonly<Record<WaybillFacts["takes"], string>> = { query: "GET", body: "POST" };

/**
 * Reads `x-waybill`; whatever in it is not what it should be, or cannot be since Waybill serves no such operations, is as if it were
 * not there: a document must not make a query of what deletes, nor a stream of what is none.
 */
export function readWaybillFacts(
  described: DescribedOperation,
  schemas: ServedSchemas,
): WaybillFacts | undefined {
  const { waybill: written, method } = described;
  if (!isPlainObject(written)) return undefined;
  const { takes } = written;
  if ((takes !== "query" && takes !== "body") || METHODS[takes] !== method) return undefined;
  const isStream = described.type === "subscription";
  if (
    (written["type"] === "subscription") !== isStream ||
    (takes === "query" && written["type"] === "mutation")
  )
    return undefined;
  const id = typeof written["id"] === "string" ? ID.exec(written["id"]) : null;
  return {
    takes,
    namespace: id?.[1],
    name: id?.[2],
    spec: readSpec(written, schemas),
    inputSchema: () => schemas.readInput(written["inputSchema"], described.parameters),
    outputSchema: () => schemas.read(written["outputSchema"]),
  };
}

function readSpec(written: Readonly<Record<string, unknown>>, schemas: ServedSchemas): WaybillFacts["spec"] {
  const { type, version, title, description, tags, annotations, errors, tier } = written;
  return {
    ...(TYPES.includes(type) && { type: type as OperationType }),
    ...(isSemanticVersion(version) && { version: version as string }),
    ...(typeof title === "string" && { title }),
    ...(typeof description === "string" && { description }),
    ...(written["deprecated"] === true && { _meta: DEPRECATED }),
    ...(TIERS.includes(tier) && { tier: tier as Tier }),
    ...(isStrings(tags) && { tags }),
    ...(isPlainObject(annotations) && { annotations: readAnnotations(annotations) }),
    ...(Array.isArray(errors) && { errors: errors.flatMap((error) => readError(error, schemas)) }),
  };
}

function readAnnotations(written: Readonly<Record<string, unknown>>): OperationAnnotations {
  const known = HINTS.filter((hint) => typeof written[hint] === "boolean");
  return Object.fromEntries(known.map((hint) => [hint, written[hint]]));
}

function readError(written: unknown, schemas: ServedSchemas): readonly ErrorDeclaration[] {
  if (!isPlainObject(written)) return [];
  const { code, description, httpStatus } = written;
  const schema = schemas.read(written["schema"]);
  if (typeof code !== "string" || !ERROR_CODE.test(code)) return [];
  const isStatus = Number.isInteger(httpStatus) && Number(httpStatus) >= 400 && Number(httpStatus) < 600;
  return [
    {
      code,
      ...(typeof description === "string" && { description }),
      ...(schema !== undefined && { schema }),
      ...(isStatus && { httpStatus: Number(httpStatus) }),
    },
  ];
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string");
}

/** Endpoints of the API itself, which are no operations of anybody's. */
const ENDPOINTS: readonly unknown[] = ["call", "batch", "health", "ready"];

/** Tells whether Waybill wrote of an operation that it is an endpoint of the API itself. */
export function isOwnEndpoint(written: unknown): boolean {
  return isPlainObject(written) && ENDPOINTS.includes(written["endpoint"]);
}
