import { CallError } from "../../../core/errors/errors.ts";
import { PACKAGE_VERSION } from "../../../core/package-version.ts";
import { isToken } from "../header-rules.ts";
import type { RequestDraft } from "../http-message.ts";
import type { TransportLimits } from "../openapi-options.ts";
import type { OperationPlan, ParameterPlan } from "../plan.ts";
import { toAcceptHeader } from "./accept-header.ts";
import { createBodyWriter } from "./body-writer.ts";
import { checkOptionHeaders } from "./check-headers.ts";
import { createCookieWriter } from "./cookie-parameter.ts";
import { createRequiredCheck } from "./credential-parameter.ts";
import { checkBodySize } from "./finish-request.ts";
import { createHeaderWriter, isSendableHeader } from "./header-parameter.ts";
import { invalidInput, notCallable } from "./invalid-input.ts";
import { isAbsent } from "./parameter-value.ts";
import { createPathTemplate } from "./path-template.ts";
import { createQueryWriter, type PairWriter } from "./query-parameter.ts";
import { createQuerystringWriter } from "./querystring-parameter.ts";
import { readInput } from "./read-input.ts";
import { resolveServer, type ServerOptions } from "./server-address.ts";

/** Where requests of an operation go, and what goes with each of them. */
export interface RequestBuilderOptions extends ServerOptions {
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly limits: TransportLimits;
}

/** Makes a draft of the request for one input; fails with `CallError` alone. */
export type RequestBuilder = (input: unknown) => RequestDraft;

/** Adds one part of an input to a draft. */
type DraftWriter = (input: object, draft: RequestDraft) => void;

const NO_INPUT = Object.freeze({});

const EMPTY = "is empty, which would be sent as nothing at all, and it is required";

/** Reads a plan once and makes what builds its requests; options that cannot work are a `TypeError`. */
export function createRequestBuilder(plan: OperationPlan, options: RequestBuilderOptions): RequestBuilder {
  const fixed = {
    accept: toAcceptHeader(plan.responses),
    "user-agent": `waybill/${PACKAGE_VERSION}`,
    ...checkOptionHeaders(options.headers),
  };
  const address = resolveServer(plan.servers, options);
  const refusal = address.refusal ?? refusalOf(plan);
  if (refusal !== undefined || address.refusal !== undefined) {
    return () => {
      throw (refusal as () => CallError)();
    };
  }
  const { origin, basePath } = address;
  const { method } = plan;
  const template = createPathTemplate(plan.path, plan.parameters, basePath);
  const writers = createWriters(plan, options.limits);
  return (input) => {
    const given = toInputObject(input);
    const headers: Record<string, string> = { ...fixed };
    const path = template.write(given);
    const draft: RequestDraft = { method, origin, path, query: [], headers, cookies: [], body: undefined };
    if (template.writeQuery !== undefined) draft.query.push(template.writeQuery(given));
    for (const write of writers) write(given, draft);
    return draft;
  };
}

function refusalOf({ method }: OperationPlan): (() => CallError) | undefined {
  if (isToken(method) && method !== "CONNECT") return undefined;
  return () => notCallable("The method of this operation cannot be sent.");
}

function toInputObject(input: unknown): object {
  if (input === undefined || input === null) return NO_INPUT;
  if (typeof input === "object" && !Array.isArray(input)) return input;
  const message = "The input must be an object, with a property for each parameter.";
  throw new CallError("VALIDATION_ERROR", message, { stack: false });
}

function createWriters(plan: OperationPlan, limits: TransportLimits): DraftWriter[] {
  const isRequired = createRequiredCheck(plan);
  const writers = plan.parameters
    .filter((each) => each.in !== "path")
    .map((each) => createParameterWriter(each, isRequired(each) && isSendableHeader(each)));
  if (plan.body !== undefined) writers.push(createBodyPart(plan.body, plan, limits));
  return writers;
}

function createParameterWriter(parameter: ParameterPlan, required: boolean): DraftWriter {
  const { key, allowEmpty } = parameter;
  const write = createPlaceWriter(parameter);
  return (input, draft) => {
    const value = readInput(input, key);
    if (!isAbsent(value)) {
      const isWritten = write(value, draft);
      if (required && !isWritten) throw invalidInput(key, EMPTY);
    } else if (value === null && allowEmpty && parameter.in === "query") write("", draft);
    else if (required) throw invalidInput(key, "is missing");
  };
}

/** Writes a value into a draft, and tells whether there was anything to write. */
type PlaceWriter = (value: unknown, draft: RequestDraft) => boolean;

function createPlaceWriter(parameter: ParameterPlan): PlaceWriter {
  switch (parameter.in) {
    case "query":
      return intoPairs(createQueryWriter(parameter), "query");
    case "querystring":
      return intoPairs(createQuerystringWriter(parameter), "query");
    case "cookie":
      return intoPairs(createCookieWriter(parameter), "cookies");
    case "header": {
      const write = createHeaderWriter(parameter);
      const name = parameter.name.toLowerCase();
      return (value, draft) => {
        const text = write(value);
        if (text !== undefined) draft.headers[name] = text;
        return text !== undefined;
      };
    }
    case "path":
      return () => true;
  }
}

function intoPairs(write: PairWriter, place: "query" | "cookies"): PlaceWriter {
  return (value, draft) => {
    const pairs = draft[place];
    const before = pairs.length;
    write(value, pairs);
    return pairs.length > before;
  };
}

function createBodyPart(
  body: NonNullable<OperationPlan["body"]>,
  { definitions }: OperationPlan,
  limits: TransportLimits,
): DraftWriter {
  const { key, required } = body;
  const write = createBodyWriter(body, definitions);
  return (input, draft) => {
    const value = readInput(input, key);
    if (value === undefined) {
      if (required) throw invalidInput(key, "is missing");
      return;
    }
    const written = write(value);
    checkBodySize(written.body, limits);
    draft.body = written.body;
    draft.headers["content-type"] = written.contentType;
  };
}
