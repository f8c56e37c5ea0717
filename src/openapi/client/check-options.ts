import { isPlainObject } from "../../core/json/json-value.ts";
import { checkNames, checkOption } from "../../core/options/check-options.ts";
import { checkPassedOn } from "../../core/secrets/source-secrets.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type {
  DocumentLimits,
  OpenApiOptions,
  OpenApiOverlay,
  OperationOverlay,
  TransportLimits,
  TransportOptions,
} from "./openapi-options.ts";
import { checkPagingRule } from "./paging/paging-rule.ts";
import { checkOptionHeaders } from "./request/check-headers.ts";
import { checkTransportOptions, TRANSPORT_OPTIONS } from "./transport/check-transport-options.ts";

const OWN = Object.keys({
  namespace: true,
  keepIds: true,
  baseUrl: true,
  server: true,
  serverVariables: true,
  auth: true,
  authOrigins: true,
  headers: true,
  trace: true,
  overlay: true,
  limits: true,
  said: true,
  maskResults: true,
  secrets: true,
  onWarning: true,
} satisfies Record<Exclude<keyof OpenApiOptions, keyof TransportOptions>, true>);

const OVERLAY = ["document", "operations"] satisfies (keyof OpenApiOverlay)[];
const OPERATION_OVERLAY = Object.keys({
  name: true,
  hide: true,
  readOnly: true,
  idempotent: true,
  stream: true,
  title: true,
  description: true,
  input: true,
  output: true,
  contentType: true,
  patch: true,
  paging: true,
} satisfies Record<keyof OperationOverlay, true>);

const LIMITS = Object.keys({
  documentBytes: true,
  files: true,
  operations: true,
  responseBytes: true,
  decodedRatio: true,
  headerBytes: true,
  requestBytes: true,
  urlCharacters: true,
  eventBytes: true,
} satisfies Record<keyof (DocumentLimits & TransportLimits), true>);

const NAMESPACE = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$/;

/** Throws a `TypeError` that names what cannot work about a document or options, before anything is read. */
export function checkOpenApiOptions(document: unknown, options: OpenApiOptions): void {
  checkDocument(document);
  if (!isPlainObject(options)) {
    throw new TypeError('fromOpenApi takes options as its second argument, such as { namespace: "github" }.');
  }
  checkNames(options, [...OWN, ...TRANSPORT_OPTIONS]);
  const { namespace, keepIds, baseUrl, server, trace, onWarning } = options;
  if (typeof namespace !== "string" || !NAMESPACE.test(namespace)) {
    throw new TypeError(
      'namespace must be letters, digits, "_" and "-", at most 64: the first part of every operation\'s id.',
    );
  }
  checkPassedOn(options);
  checkOption("keepIds", keepIds, "true or false", typeof keepIds === "boolean");
  checkOption("trace", trace, "true or false", typeof trace === "boolean");
  checkOption("onWarning", onWarning, "a function", typeof onWarning === "function");
  checkOption("baseUrl", baseUrl, "an http or https URL without user or password", isBaseUrl(baseUrl));
  const isServer = typeof server === "string" || (Number.isInteger(server) && Number(server) >= 0);
  checkOption(
    "server",
    server,
    "a place in the document's list of servers, a name or a URL of one",
    isServer,
  );
  for (const name of ["serverVariables", "headers"] as const) {
    checkOption(name, options[name], "an object of strings", isStrings(options[name]));
  }
  checkOption("auth", options.auth, "an object of credentials by scheme", isPlainObject(options.auth));
  checkOption(
    "authOrigins",
    options.authOrigins,
    "a list of http or https origins",
    isOrigins(options.authOrigins),
  );
  checkOption("limits", options.limits, "an object of numbers", isPlainObject(options.limits));
  checkNames(options.limits ?? {}, LIMITS, "limits.");
  checkOptionHeaders(options.headers);
  checkTransportOptions(options);
  for (const overlay of [options.overlay ?? []].flat()) checkOverlay(overlay);
}

function checkDocument(document: unknown): void {
  const isName = (typeof document === "string" && document !== "") || document instanceof URL;
  if (isName || isPlainObject(document)) return;
  throw new TypeError("The document must be a path, a URL, or the parsed document itself.");
}

function checkOverlay(overlay: unknown): void {
  checkOption("overlay", overlay, "an object, or a list of them", isPlainObject(overlay));
  const { document, operations = {} } = overlay as OpenApiOverlay;
  checkNames(overlay as object, OVERLAY, "overlay.");
  checkOption("overlay.document", document, "an object to merge into the document", isPlainObject(document));
  checkOption("overlay.operations", operations, "an object by operation", isPlainObject(operations));
  for (const [key, operation] of Object.entries(operations)) {
    const name = `overlay.operations[${JSON.stringify(key.slice(0, 80))}]`;
    checkOption(name, operation, "an object", isPlainObject(operation));
    checkNames(operation, OPERATION_OVERLAY, `${name}.`);
    checkOperationOverlay(name, operation);
  }
}

const FLAGS = ["hide", "readOnly", "idempotent", "stream"] as const;
const TEXTS = ["name", "title", "description", "contentType"] as const;
const PATCHES = ["input", "output", "patch"] as const;

function checkOperationOverlay(name: string, overlay: OperationOverlay): void {
  checkPagingRule(overlay.paging, `${name}.paging`);
  for (const flag of FLAGS) {
    checkOption(`${name}.${flag}`, overlay[flag], "true or false", typeof overlay[flag] === "boolean");
  }
  for (const text of TEXTS) {
    checkOption(`${name}.${text}`, overlay[text], "a string", typeof overlay[text] === "string");
  }
  for (const patch of PATCHES) {
    checkOption(`${name}.${patch}`, overlay[patch], "an object to merge", isPlainObject(overlay[patch]));
  }
}

function isOrigins(value: unknown): boolean {
  return Array.isArray(value) && value.every(isBaseUrl);
}

function isBaseUrl(value: unknown): boolean {
  if (!(typeof value === "string" || value instanceof URL) || parseUrl(String(value)) === undefined)
    return false;
  const { protocol, username, password } = new URL(value);
  return /^https?:$/.test(protocol) && username === "" && password === "";
}

function isStrings(value: unknown): boolean {
  return isPlainObject(value) && Object.values(value).every((entry) => typeof entry === "string");
}
