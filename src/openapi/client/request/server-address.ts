import type { CallError } from "../../../core/errors/errors.ts";
import { parseUrl } from "../../../core/text/parse-url.ts";
import type { ServerPlan } from "../plan.ts";
import { notCallable, shown } from "./invalid-input.ts";
import { fillServerUrl } from "./server-variables.ts";

/** Which of an operation's servers is meant, and what is filled into its URL. */
export interface ServerOptions {
  readonly baseUrl?: string | URL | undefined;
  readonly server?: number | string | undefined;
  readonly serverVariables?: Readonly<Record<string, string>> | undefined;
  /** Where the document was read from. */
  readonly location?: URL | undefined;
}

/** Where requests of an operation go, or what to tell whoever calls it. */
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
  return { refusal: () => notCallable(message) };
}
