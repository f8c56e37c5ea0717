import { isPlainObject } from "../../core/json/json-value.ts";
import { toWire } from "../../core/wire/wire.ts";
import { DATA_TYPE, ENVELOPE_TYPE } from "../media-types.ts";
import type { RequestDraft } from "./http-message.ts";
import type { OperationPlan } from "./plan.ts";
import type { RequestBuilder } from "./request/request-builder.ts";
import type { WaybillFacts } from "./waybill-facts.ts";

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
  const own: typeof create = (wanted) => {
    const build = create(wanted);
    return (input) => {
      const draft = build(input);
      draft.headers["accept"] = ACCEPT;
      return draft;
    };
  };
  return createBuilder(own, plan, { takes, namespace, name });
}

/** Data first, as JSON where that changes nothing, and the whole envelope for what headers cannot hold; documents list none of Waybill's types. */
const ACCEPT = `application/json, ${ENVELOPE_TYPE};q=0.9, ${DATA_TYPE};q=0.8, */*;q=0.1`;

function createBuilder(
  create: (plan: OperationPlan) => RequestBuilder,
  plan: OperationPlan,
  { takes, namespace, name }: Pick<WaybillFacts, "takes" | "namespace" | "name">,
): RequestBuilder {
  const bare = { ...plan, parameters: [], body: undefined };
  if (takes === "body") {
    const build = create(bare);
    return (input) => withBody(build({}), input);
  }
  const build = create(plan);
  const keys = new Map(plan.parameters.map((parameter) => [parameter.name, parameter.key]));
  if (namespace === undefined) return (input) => build(asQuery(input, keys) ?? input);
  const buildCall = create({ ...bare, method: "POST", path: CALL_PATH });
  const operation = `${namespace}.${name}`;
  return (input) => {
    const query = asQuery(input, keys);
    return query === undefined ? withBody(buildCall({}), { operation, input }) : build(query);
  };
}

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
