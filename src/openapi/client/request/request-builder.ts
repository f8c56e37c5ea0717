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
import { checkBodySize } from "./finish-request.ts";
import { createHeaderWriter, isSendableHeader } from "./header-parameter.ts";
import { invalidInput, notCallable } from "./invalid-input.ts";
import { isAbsent } from "./parameter-value.ts";
import { createPathTemplate } from "./path-template.ts";
import { createQueryWriter } from "./query-parameter.ts";
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
  const writers = plan.parameters.filter((each) => each.in !== "path").map(createParameterWriter);
  if (plan.body !== undefined) writers.push(createBodyPart(plan.body, plan, limits));
  return writers;
}

function createParameterWriter(parameter: ParameterPlan): DraftWriter {
  const { key, allowEmpty } = parameter;
  const required = parameter.required && isSendableHeader(parameter);
  const write = createPlaceWriter(parameter);
  return (input, draft) => {
    const value = readInput(input, key);
    if (!isAbsent(value)) write(value, draft);
    else if (value === null && allowEmpty && parameter.in === "query") write("", draft);
    else if (required) throw invalidInput(key, "is missing");
  };
}

function createPlaceWriter(parameter: ParameterPlan): (value: unknown, draft: RequestDraft) => void {
  switch (parameter.in) {
    case "query": {
      const write = createQueryWriter(parameter);
      return (value, draft) => write(value, draft.query);
    }
    case "querystring": {
      const write = createQuerystringWriter(parameter);
      return (value, draft) => write(value, draft.query);
    }
    case "cookie": {
      const write = createCookieWriter(parameter);
      return (value, draft) => write(value, draft.cookies);
    }
    case "header": {
      const write = createHeaderWriter(parameter);
      const name = parameter.name.toLowerCase();
      return (value, draft) => {
        const text = write(value);
        if (text !== undefined) draft.headers[name] = text;
      };
    }
    case "path":
      return () => {};
  }
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
