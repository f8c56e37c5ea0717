import { isPlainObject, setOwn } from "../../../core/json/json-value.ts";
import { percentDecoded } from "../../../core/text/parse-url.ts";
import { type Definitions, viewWithDefinitions } from "../definitions.ts";
import type { OperationPlan, ParameterPlan } from "../plan.ts";
import { LAST_PAGE, type NextPage, type PageFinder, valueAt } from "./list-shape.ts";

/** Turns the address of a page into the input that asks for it; nothing where it is not this operation's. */
export type ToInput = (target: string, input: unknown) => NextPage | undefined;

const LONGEST_TARGET = 8_192;
/** Stands in where an address is relative; nothing is ever sent there. */
const NOWHERE = "http://relative.invalid";

/** Finds the next page in a `Link` header; where one is declared, a response without it is the last page. */
export function linkFinder(toInput: ToInput, isDeclared: boolean): PageFinder {
  return ({ meta }, input) => {
    const header =
      meta.source === "http" && Object.hasOwn(meta.headers, "link") ? meta.headers["link"] : undefined;
    if (typeof header !== "string") return isDeclared ? LAST_PAGE : undefined;
    const links = parseLinks(header);
    const target = targetOf(links, "next");
    if (target !== undefined) return toInput(target, input);
    const isAboutPages = ["prev", "previous", "first", "last"].some(
      (name) => targetOf(links, name) !== undefined,
    );
    return isDeclared || isAboutPages ? LAST_PAGE : undefined;
  };
}

/** Finds the next page in an address among the data. */
export function bodyLinkFinder(toInput: ToInput, path: readonly string[]): PageFinder {
  return ({ data }, input) => {
    if (!isPlainObject(data)) return undefined;
    const target = valueAt(data, path);
    if (typeof target === "string" && target !== "") return toInput(target, input);
    return target === undefined || target === null || target === "" || target === false
      ? LAST_PAGE
      : undefined;
  };
}

/** How addresses are read that ask with more than the document declares. */
export interface ToInputOptions {
  /** Gives the names in an address of this operation that there is no input for, instead of nothing. @default false */
  readonly tellsUndeclared?: boolean | undefined;
  /** Inputs that choose a page: without one of them among what is new, what is not declared must be what chooses it. @default any input */
  readonly pageKeys?: ReadonlySet<string> | undefined;
}

/**
 * Creates the reading of addresses for one operation: what they say in the query is put into the input, as far as it is declared.
 * Nothing is ever sent to the address itself, so that its host and path are looked at only to tell whether it is about this operation.
 */
export function createToInput(
  plan: OperationPlan,
  origin: string | undefined,
  { tellsUndeclared = false, pageKeys }: ToInputOptions = {},
): ToInput {
  const query = plan.parameters.filter((parameter) => parameter.in === "query");
  const hosts = origin === undefined ? serverHosts(plan) : [hostOf(origin)];
  return (target, input) => {
    const url = target.length <= LONGEST_TARGET ? urlOf(target) : undefined;
    if (url === undefined || !isOwnHost(url, hosts) || !isOwnPath(url, plan, input)) return undefined;
    const { next, news } = withQuery(input, url.searchParams, { query, definitions: plan.definitions });
    const undeclared = undeclaredIn(url.searchParams, query);
    // Without anything new, following it would go round in circles.
    const isChosen =
      news.length > 0 &&
      (undeclared.length === 0 || pageKeys === undefined || news.some((key) => pageKeys.has(key)));
    if (isChosen) return { isLast: false, token: target, input: next };
    return tellsUndeclared && undeclared.length > 0 ? { isLast: false, undeclared } : undefined;
  };
}

function undeclaredIn(search: URLSearchParams, query: readonly ParameterPlan[]): readonly string[] {
  const declared = new Set(query.map(({ name }) => name));
  return [...new Set(search.keys())].filter((name) => !declared.has(name));
}

function urlOf(target: string): URL | undefined {
  try {
    const url = new URL(target, NOWHERE);
    return url.protocol === "http:" || url.protocol === "https:" ? url : undefined;
  } catch {
    return undefined;
  }
}

function hostOf(origin: string): string {
  return urlOf(origin)?.hostname ?? "";
}

/** Servers whose host is not written out could be anywhere. */
function serverHosts(plan: OperationPlan): readonly string[] | undefined {
  const hosts = plan.servers.map(({ url }) => (url.includes("{") ? "" : hostOf(url)));
  return hosts.some((host) => host === "" || NOWHERE.endsWith(host)) ? undefined : hosts;
}

/** Without scheme and port, which servers behind a proxy get wrong. */
function isOwnHost(url: URL, hosts: readonly string[] | undefined): boolean {
  return hosts === undefined || NOWHERE.endsWith(url.hostname) || hosts.includes(url.hostname);
}

/** An address may have a prefix that the template has not; one that is a query alone has no path. */
function isOwnPath(url: URL, plan: OperationPlan, input: unknown): boolean {
  if (url.origin === NOWHERE && url.pathname === "/") return true;
  const wanted = segmentsOf(plan.path);
  const given = segmentsOf(url.pathname);
  const offset = given.length - wanted.length;
  return (
    offset >= 0 &&
    wanted.every((segment, i) => isSameSegment(segment, given[offset + i] ?? "", { plan, input }))
  );
}

function segmentsOf(path: string): readonly string[] {
  return path.split("/").filter((segment) => segment !== "");
}

function isSameSegment(
  wanted: string,
  given: string,
  { plan, input }: { readonly plan: OperationPlan; readonly input: unknown },
): boolean {
  const text = percentDecoded(given).toLowerCase();
  if (!wanted.includes("{")) return text === percentDecoded(wanted).toLowerCase();
  const name = wanted.startsWith("{") && wanted.endsWith("}") ? wanted.slice(1, -1) : undefined;
  const key = plan.parameters.find((parameter) => parameter.in === "path" && parameter.name === name)?.key;
  const value = key === undefined ? undefined : valueAt(input, [key]);
  const isKnown = typeof value === "string" || typeof value === "number";
  return !isKnown || String(value).toLowerCase() === text;
}

/** The input with what an address says, and the keys whose values are not the same as before. */
function withQuery(
  input: unknown,
  search: URLSearchParams,
  { query, definitions }: { readonly query: readonly ParameterPlan[]; readonly definitions: Definitions },
): { readonly next: Readonly<Record<string, unknown>>; readonly news: readonly string[] } {
  const next: Record<string, unknown> = {};
  if (isPlainObject(input)) for (const key of Object.keys(input)) setOwn(next, key, input[key]);
  const news: string[] = [];
  for (const parameter of query) {
    const value = queryValue(search, parameter, definitions);
    if (value === undefined) continue;
    const old = Object.hasOwn(next, parameter.key) ? next[parameter.key] : undefined;
    if (String(old) === String(value) && old !== undefined) continue;
    news.push(parameter.key);
    setOwn(next, parameter.key, value);
  }
  return { next, news };
}

/** Reads a value as its schema wants it; objects, which have many forms, stay as they were asked for. */
function queryValue(search: URLSearchParams, parameter: ParameterPlan, definitions: Definitions): unknown {
  const { name, schema, explode } = parameter;
  const [first, ...others] = search.getAll(name);
  if (first === undefined) return undefined;
  const view = viewWithDefinitions(schema, definitions);
  const { types } = view;
  if (types.has("object") && !types.has("string")) return undefined;
  if (!types.has("array")) return scalar(first, types);
  const texts = explode || others.length > 0 ? [first, ...others] : first.split(",");
  const itemTypes = view.items().types;
  return texts.map((text) => scalar(text, itemTypes));
}

function scalar(text: string, types: ReadonlySet<string>): string | number | boolean {
  if (types.has("string")) return text;
  const isNumber = types.has("integer") || types.has("number");
  if (isNumber && /^-?[0-9]{1,15}(?:\.[0-9]{1,15})?$/.test(text)) return Number(text);
  return types.has("boolean") && (text === "true" || text === "false") ? text === "true" : text;
}

/** One link of a `Link` header. */
export interface WebLink {
  readonly target: string;
  /** In lower case. */
  readonly relations: readonly string[];
}

const LONGEST = 65_536;
const MOST_LINKS = 100;

/** Reads a `Link` header (RFC 8288), in linear time; what cannot be read ends it. */
export function parseLinks(header: string): readonly WebLink[] {
  const links: WebLink[] = [];
  const text = header.slice(0, LONGEST);
  let at = 0;
  while (links.length < MOST_LINKS) {
    at = skip(text, at, " \t,");
    if (text[at] !== "<") break;
    const end = text.indexOf(">", at);
    if (end === -1) break;
    const parameters = readParameters(text, end + 1);
    links.push({ target: text.slice(at + 1, end).trim(), relations: relationsOf(parameters.rel) });
    at = parameters.end;
  }
  return links;
}

/** Gives the first target of a relation. */
export function targetOf(links: readonly WebLink[], relation: string): string | undefined {
  return links.find(({ relations }) => relations.includes(relation))?.target;
}

function relationsOf(rel: string | undefined): readonly string[] {
  return rel === undefined ? [] : rel.toLowerCase().split(/[ \t]+/);
}

/** The first `rel` counts, others are to be ignored. */
function readParameters(
  text: string,
  start: number,
): { readonly rel: string | undefined; readonly end: number } {
  let rel: string | undefined;
  let at = skip(text, start, " \t");
  while (text[at] === ";") {
    const nameAt = skip(text, at + 1, " \t");
    let end = nameAt;
    while (end < text.length && !"=;, \t".includes(text.charAt(end))) end++;
    const name = text.slice(nameAt, end).toLowerCase();
    at = skip(text, end, " \t");
    if (text[at] !== "=") continue;
    const value = readValue(text, skip(text, at + 1, " \t"));
    if (name === "rel") rel ??= value.text;
    at = skip(text, value.end, " \t");
  }
  return { rel, end: at };
}

function readValue(text: string, start: number): { readonly text: string; readonly end: number } {
  let end = start;
  if (text[start] !== '"') {
    while (end < text.length && !";, \t".includes(text.charAt(end))) end++;
    return { text: text.slice(start, end), end };
  }
  let value = "";
  for (end = start + 1; end < text.length && text[end] !== '"'; end++) {
    if (text[end] === "\\") end++;
    value += text.charAt(end);
  }
  return { text: value, end: end + 1 };
}

function skip(text: string, start: number, characters: string): number {
  let at = start;
  while (at < text.length && characters.includes(text.charAt(at))) at++;
  return at;
}
