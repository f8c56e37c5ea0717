import { checkOption, checkOptionsObject } from "../../core/options/check-options.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { ToOpenApiOptions } from "./http-handler-options.ts";

const BASE_PATH = /^(?:\/[\w.~-]+)+$/;
/** First segments of paths that are served beside those of the operations. */
const RESERVED = ["call", "batch", "health", "ready", "docs", "openapi.json", ".well-known"];
const FORMAT_NAME = /^[a-z0-9][a-z0-9.-]{0,63}$/i;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Names of the options that say what is written into a document, whoever writes it. */
export const DOCUMENT_OPTIONS = Object.keys({
  info: true,
  servers: true,
  basePath: true,
  formats: true,
  examples: true,
  onWarning: true,
} satisfies Record<keyof DocumentOptions, true>);

type DocumentOptions = Omit<ToOpenApiOptions, "identity" | "auth">;

/** Throws a `TypeError` for what cannot run operations. */
export function checkExecutor(executor: Executor, taker: string): void {
  const isExecutor = ["execute", "subscribe", "list", "get", "onChange"].every(
    (name) =>
      typeof (executor as unknown as Record<string, unknown> | null | undefined)?.[name] === "function",
  );
  if (!isExecutor) {
    throw new TypeError(`${taker} takes what can run operations first, such as an OperationRegistry.`);
  }
}

/** Throws a `TypeError` for options of a document that cannot work, or are none. */
export function checkToOpenApiOptions(options: ToOpenApiOptions): void {
  checkOptionsObject(options, [...DOCUMENT_OPTIONS, "identity", "auth"]);
  checkDocumentOptions(options);
  const { identity, auth } = options;
  checkOption("identity", identity, "an object", typeof identity === "object" && identity !== null);
  if (auth !== undefined) checkDescribedAuth(auth, "auth");
}

/** Throws a `TypeError` for ways of authentication that cannot be described. */
export function checkDescribedAuth(auth: NonNullable<ToOpenApiOptions["auth"]>, option: string): void {
  checkOptionsObject(auth, ["bearer", "apiKeyHeader"], `${option}.`);
  const { bearer, apiKeyHeader: header } = auth;
  checkOption(`${option}.bearer`, bearer, "true or false", typeof bearer === "boolean");
  const isHeader = typeof header === "string" && HEADER_NAME.test(header);
  checkOption(`${option}.apiKeyHeader`, header, "the name of a header", isHeader);
}

/** The same for those options alone that `serveHttp`, `createHttpHandler` and `toOpenApi` share. */
export function checkDocumentOptions(options: DocumentOptions): void {
  const { info, servers, formats, examples, onWarning } = options;
  if (info !== undefined) checkOptionsObject(info, ["title", "version", "description"], "info.");
  for (const name of ["title", "version", "description"] as const) {
    checkOption(`info.${name}`, info?.[name], "text", typeof info?.[name] === "string");
  }
  const areAddresses =
    Array.isArray(servers) && servers.every((url) => typeof url === "string" && url !== "");
  checkOption("servers", servers, 'a list of addresses such as "https://api.example/v1"', areAddresses);
  checkBasePath(options.basePath);
  checkOption("formats", formats, "a list of formats", Array.isArray(formats));
  for (const format of formats ?? []) checkFormat(format?.name);
  const isObject = typeof examples === "object" && examples !== null && !Array.isArray(examples);
  checkOption("examples", examples, "an object with inputs by the id of their operation", isObject);
  checkOption("onWarning", onWarning, "a function", typeof onWarning === "function");
}

function checkBasePath(basePath: unknown): void {
  const isPath =
    typeof basePath === "string" && BASE_PATH.test(basePath) && !/\/\.{1,2}(?:\/|$)/.test(basePath);
  checkOption("basePath", basePath, 'a path such as "/api", without a slash at its end', isPath);
  const [, first = ""] = typeof basePath === "string" ? basePath.split("/") : [];
  if (RESERVED.includes(first)) {
    throw new TypeError(`basePath must not begin with "/${first}", where something else is served.`);
  }
}

function checkFormat(name: unknown): void {
  if (typeof name === "string" && FORMAT_NAME.test(name) && !/^(?:data|envelope)$/i.test(name)) return;
  throw new TypeError('formats must have names that fit a media type, and none of "data" and "envelope".');
}
