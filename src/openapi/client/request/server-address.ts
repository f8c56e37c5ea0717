import type { CallError } from "../../../core/errors/errors.ts";
import { parseUrl } from "../../../core/text/parse-url.ts";
import type { OpenApiOptions } from "../openapi-options.ts";
import type { ServerPlan, ServerVariablePlan } from "../plan.ts";
import { notCallable, shown } from "./input-text.ts";

/** Which of an operation's servers is meant, and what is filled into its URL. */
export interface ServerOptions extends Pick<OpenApiOptions, "baseUrl" | "server" | "serverVariables"> {
  /** Where the document was read from. */
  readonly location?: URL | undefined;
}

/** Where requests of an operation go, or what its caller is told. */
export type ServerAddress =
  | { readonly origin: string; readonly basePath: string; readonly refusal?: undefined }
  | { readonly refusal: () => CallError };

/** A host with a dot or a port in it, and at most a plain path behind it. */
const HOST_FIRST = /^(?:[a-z0-9-]+(?:\.[a-z0-9-]+)+|[a-z0-9-]+(?=:))(?::\d{1,5})?(?:\/[\w.~/-]*)?$/i;

const LONGEST_SHOWN = 80;

/** Finds where an operation is served; options that cannot work are a `TypeError`, documents that cannot are told to the caller. */
export function resolveServer(servers: readonly ServerPlan[], options: ServerOptions): ServerAddress {
  if (options.baseUrl !== undefined) return fromBaseUrl(options.baseUrl);
  const server = chooseServer(servers, options.server);
  if (server === undefined) return refuse("its document names no server");
  const filled = fillServerUrl(server, options.serverVariables ?? {});
  if (filled.missing !== undefined) {
    const message = `The address of this operation needs the variable ${shown(filled.missing)}: pass serverVariables.`;
    return { refusal: () => notCallable(message) };
  }
  return toAddress(filled.url, options.location);
}

function fromBaseUrl(baseUrl: string | URL): ServerAddress {
  const url = parseUrl(String(baseUrl));
  const wrong = url === undefined ? "is not an absolute URL" : whyUnusable(url);
  if (url === undefined || wrong !== undefined) {
    const example = withScheme(String(baseUrl)) ?? "https://api.example/v1";
    throw new TypeError(`baseUrl must be an address such as "${example}"; it ${wrong}.`);
  }
  return addressOf(url);
}

function chooseServer(
  servers: readonly ServerPlan[],
  wanted: number | string | undefined,
): ServerPlan | undefined {
  if (wanted === undefined) return servers[0];
  const found =
    typeof wanted === "number"
      ? servers[wanted]
      : (servers.find(({ name, url }) => name === wanted || url === wanted) ??
        servers.find(({ description }) => description === wanted));
  if (found !== undefined) return found;
  const known = servers.slice(0, 10).map(({ name, url }) => shown(name ?? url));
  throw new TypeError(
    `There is no server ${JSON.stringify(wanted)}; there are ${known.join(", ") || "none"}.`,
  );
}

/** Relative addresses are relative to the document, where that came from the network. */
function toAddress(text: string, location: URL | undefined): ServerAddress {
  const base = location?.protocol === "http:" || location?.protocol === "https:" ? location.href : undefined;
  const url = parseUrl(text, base);
  const wrong = url && whyUnusable(url);
  if (url !== undefined && wrong === undefined) return addressOf(url);
  const meant = withScheme(text);
  if (meant !== undefined) {
    return refuse(`the server "${text}" of its document begins with neither "https://" nor "http://"`, meant);
  }
  return refuse(
    url === undefined
      ? "its document names no server, or a relative one"
      : `the address of its server ${wrong}`,
  );
}

/** What was meant by a host without a scheme; nothing for any other text, which nobody should repeat. */
function withScheme(text: string): string | undefined {
  if (text.length > LONGEST_SHOWN || !HOST_FIRST.test(text)) return undefined;
  return `${/^(?:localhost|127\.)/i.test(text) ? "http" : "https"}://${text}`;
}

function addressOf(url: URL): ServerAddress {
  // What a URL leaves as it is and a path of ours may not hold.
  const path = url.pathname.replace(/[^\w\-.~!$&'()*+,;=:@%/]/g, encodeURIComponent);
  let end = path.length;
  while (path[end - 1] === "/") end--;
  return { origin: url.origin, basePath: path.slice(0, end).replace(/%(?![0-9A-Fa-f]{2})/g, "%25") };
}

function whyUnusable(url: URL): string | undefined {
  if (url.protocol !== "http:" && url.protocol !== "https:") return "is neither http nor https";
  if (url.username !== "" || url.password !== "") return "holds a user name or password";
  return url.search !== "" || url.hash !== "" ? "has a query or a fragment" : undefined;
}

function refuse(why: string, example?: string): ServerAddress {
  const advice = example === undefined ? "Pass baseUrl." : `Pass baseUrl, such as "${example}".`;
  const message = `Nobody knows where this operation is: ${why}. ${advice}`;
  return { refusal: () => notCallable(message, { reason: "no-address", value: example, advice }) };
}

/** A URL with its variables filled in, or the name of one that has no value. */
export type FilledUrl = { readonly url: string; readonly missing?: undefined } | { readonly missing: string };

/** What a scheme, host or port may be given as: nothing that ends it, or begins another. */
const AUTHORITY_VALUE = /^[A-Za-z0-9._~-]+$/;

/** What would leave the path. */
const NO_PATH_VALUE = /[?#\\]|\p{Cc}/u;

/** Fills the variables of a server's URL; a value given for one that it does not have, or may not have, is a `TypeError`. */
function fillServerUrl(server: ServerPlan, given: Readonly<Record<string, string>>): FilledUrl {
  const names = new Set([...server.url.matchAll(/\{([^{}]*)\}/g)].map(([, name = ""]) => name));
  checkGiven(given, names, server);
  const authorityEnd = endOfAuthority(server.url);
  let missing: string | undefined;
  const url = server.url.replace(/\{([^{}]*)\}/g, (whole: string, name: string, at: number) => {
    const variable = variableOf(server, name);
    const value = Object.hasOwn(given, name) ? given[name] : (variable.default ?? variable.enum?.[0]);
    if (value === undefined) {
      missing ??= name;
      return whole;
    }
    if (Object.hasOwn(given, name)) {
      checkValue(value, { name, variable, place: placeOf(server.url, at, authorityEnd) });
    }
    return value;
  });
  return missing === undefined ? { url } : { missing };
}

function variableOf(server: ServerPlan, name: string): ServerVariablePlan {
  return (Object.hasOwn(server.variables, name) ? server.variables[name] : undefined) ?? {};
}

function checkGiven(
  given: Readonly<Record<string, string>>,
  names: ReadonlySet<string>,
  server: ServerPlan,
): void {
  for (const name of Object.keys(given)) {
    if (names.has(name) || Object.hasOwn(server.variables, name)) continue;
    const known = [...names].map((each) => JSON.stringify(each)).join(", ");
    throw new TypeError(
      `serverVariables: the server has no variable ${JSON.stringify(name)}; it has ${known || "none"}.`,
    );
  }
}

type ValuePlace = "authority" | "path" | "whole";

/** Where a variable stands; one that begins the URL and is not the scheme alone is an address by itself. */
function placeOf(url: string, at: number, authorityEnd: number): ValuePlace {
  if (at === 0 && !/^\{[^{}]*\}:/.test(url)) return "whole";
  return at < authorityEnd ? "authority" : "path";
}

function endOfAuthority(url: string): number {
  const scheme = /^[^/?#]*:\/\/|^\/\//.exec(url)?.[0];
  if (scheme === undefined) return 0;
  const rest = url.slice(scheme.length).replace(/\{[^{}]*\}/g, (name) => "x".repeat(name.length));
  const end = rest.search(/[/?#\\]/);
  return end === -1 ? url.length : scheme.length + end;
}

interface Filled {
  readonly name: string;
  readonly variable: ServerVariablePlan;
  readonly place: ValuePlace;
}

function checkValue(value: unknown, { name, variable, place }: Filled): void {
  const shownName = `serverVariables: ${JSON.stringify(name)}`;
  if (typeof value !== "string") throw new TypeError(`${shownName} must be text.`);
  if (variable.enum !== undefined) {
    if (variable.enum.includes(value)) return;
    const known = variable.enum.slice(0, 10).map((each) => JSON.stringify(each));
    throw new TypeError(`${shownName} must be one of ${known.join(", ")}.`);
  }
  if (value === variable.default) return;
  if (place === "authority" && !AUTHORITY_VALUE.test(value)) {
    throw new TypeError(`${shownName} is part of a host: only letters, digits, ".", "-", "_" and "~".`);
  }
  if (place === "path" && (NO_PATH_VALUE.test(value) || hasDots(value))) {
    throw new TypeError(`${shownName} is part of a path: no "?", "#", "\\", and no segment "." or "..".`);
  }
  if (place === "whole" && !isAddress(value)) {
    throw new TypeError(`${shownName} must be an address such as "https://api.example".`);
  }
}

function hasDots(value: string): boolean {
  return value.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
}

function isAddress(value: string): boolean {
  if (!/^https?:\/\//i.test(value) || parseUrl(value) === undefined) return false;
  const { username, password } = new URL(value);
  return username + password === "" && !NO_PATH_VALUE.test(value) && !hasDots(value);
}
