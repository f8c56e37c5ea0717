import { isPlainObject, isStringList } from "../../core/json/json-value.ts";
import { annotationsOf } from "../../core/operation/operation.ts";
import type {
  ErrorDeclaration,
  OperationSpec,
  OperationType,
  Tier,
} from "../../core/operation/operation-types.ts";
import { isSemanticVersion } from "../../core/operation/semantic-version.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import { toWire } from "../../core/wire/wire.ts";
import { DATA_TYPE, ENVELOPE_TYPE } from "../media-types.ts";
import type { ServedSchemas } from "./document/served-schemas.ts";
import type { RequestDraft } from "./http-message.ts";
import type { IndexedOperation, OperationPlan } from "./plan.ts";
import type { RequestBuilder } from "./request/request-builder.ts";

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
const ID = /^([A-Za-z0-9_][A-Za-z0-9_-]{0,63})\.([A-Za-z0-9_][A-Za-z0-9_./-]{0,199})$/;
const ERROR_CODE = /^[A-Za-z][A-Za-z0-9_.-]{0,99}$/;

/** How an operation that Waybill serves is reached. */
const METHODS: Readonly<Record<WaybillFacts["takes"], string>> = { query: "GET", body: "POST" };

/**
 * Reads `x-waybill`; whatever in it is not what it should be, or cannot be since Waybill serves no such operations, is as if it were
 * not there: a document must not make a query of what deletes, nor a stream of what is none.
 */
export function readWaybillFacts(
  described: IndexedOperation,
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
    ...(isStringList(tags) && { tags }),
    ...(isPlainObject(annotations) && { annotations: annotationsOf(annotations) }),
    ...(Array.isArray(errors) && { errors: errors.flatMap((error) => readError(error, schemas)) }),
  };
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

/** Endpoints of the API itself, which are no operations of anybody's. */
const ENDPOINTS: readonly unknown[] = ["call", "batch", "health", "ready", "tasks", "task", "task-result"];

/** Tells whether Waybill wrote of an operation that it is an endpoint of the API itself. */
export function isOwnEndpoint(written: unknown): boolean {
  return isPlainObject(written) && ENDPOINTS.includes(written["endpoint"]);
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Where an operation of a Waybill server is called by id, whatever its own route can carry. */
const CALL_PATH = "/call";

/**
 * Creates what builds requests for an operation that Waybill serves: the input is the query or the body, as it is. What a query
 * cannot carry goes to the endpoint for calls by id. `create` makes a builder of a plan.
 */
export function createWaybillBuilder(
  create: (plan: OperationPlan) => RequestBuilder,
  plan: OperationPlan,
  { takes, namespace, name }: WaybillFacts,
): RequestBuilder {
  const builderOf: typeof create = (wanted) => {
    const build = create(wanted);
    return (input) => {
      const draft = build(input);
      draft.headers["accept"] = ACCEPT;
      return draft;
    };
  };
  const bare = { ...plan, parameters: [], body: undefined };
  if (takes === "body") {
    const build = builderOf(bare);
    return (input) => withBody(build({}), input);
  }
  const build = builderOf(plan);
  const keys = new Map(plan.parameters.map((parameter) => [parameter.name, parameter.key]));
  if (namespace === undefined) return (input) => build(asQuery(input, keys) ?? input);
  const buildCall = builderOf({ ...bare, method: "POST", path: CALL_PATH });
  const operation = `${namespace}.${name}`;
  return (input) => {
    const query = asQuery(input, keys);
    return query === undefined ? withBody(buildCall({}), { operation, input }) : build(query);
  };
}

/** Data first, as JSON where that changes nothing, and the whole envelope for what headers cannot hold; documents list none of Waybill's types. */
const ACCEPT = `application/json, ${ENVELOPE_TYPE};q=0.9, ${DATA_TYPE};q=0.8, */*;q=0.1`;

/** Nothing at all is sent as nothing at all, and what is plain JSON as JSON. */
function withBody(draft: RequestDraft, input: unknown): RequestDraft {
  if (input === undefined) return draft;
  const wire = toWire(input, { errors: false });
  draft.headers["content-type"] = Object.is(wire, input) ? "application/json" : DATA_TYPE;
  draft.body = JSON.stringify(wire);
  return draft;
}

/** The input by the keys of its parameters; nothing where a query would change or lose some of it. */
function asQuery(
  input: unknown,
  keys: ReadonlyMap<string, string>,
): Readonly<Record<string, unknown>> | undefined {
  if (input === undefined) return {};
  if (!isPlainObject(input)) return undefined;
  const query: [string, unknown][] = [];
  for (const [name, value] of Object.entries(input)) {
    const key = keys.get(name);
    if (key === undefined || !isQueryValue(value)) return undefined;
    query.push([key, value]);
  }
  return Object.fromEntries(query);
}

function isQueryValue(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 && value.every(isQueryScalar) : isQueryScalar(value);
}

function isQueryScalar(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  return typeof value === "boolean" || (typeof value === "string" && !LONE_SURROGATE.test(value));
}
