import { checkOption, checkOptionsObject } from "../../core/options/check-options.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { ServedMcp } from "./mcp-server.ts";
import type { LiveMcpProviders, McpServerOptions, ToolNaming } from "./mcp-server-options.ts";
import type { ServedExecutor } from "./tool-table.ts";

const NAMES = Object.keys({
  name: true,
  title: true,
  version: true,
  instructions: true,
  names: true,
  format: true,
  formats: true,
  formatOf: true,
  store: true,
  onStoredRead: true,
  inlineCharactersOf: true,
  explainMissing: true,
  providers: true,
  resources: true,
  resourceTemplates: true,
  prompts: true,
  catalogue: true,
  identity: true,
  limits: true,
  onWarning: true,
} satisfies Record<keyof McpServerOptions, true>);

const NAMING = Object.keys({ prefix: true, dots: true } satisfies Record<keyof ToolNaming, true>);
const EXECUTOR = ["execute", "subscribe", "list", "get", "onChange"] satisfies (keyof ServedExecutor)[];
const SERVER = ["answer", "follow", "close"] satisfies (keyof ServedMcp)[];
const PROVIDER = ["listResources", "readResource", "listPrompts", "getPrompt", "complete", "onEvent"];

/** Throws a `TypeError` unless operations can be run on this. */
export function checkExecutor(executor: unknown): void {
  if (hasFunctions(executor, EXECUTOR)) return;
  const hint = isPromise(executor) ? "await the promise first" : "such as new OperationRegistry([operation])";
  throw new TypeError(`toMcpServer takes a registry or another executor, ${hint}.`);
}

/** Throws a `TypeError` unless this can be served by the function of that name. */
export function checkServer(server: unknown, by: string): void {
  if (hasFunctions(server, SERVER)) return;
  const hint = isPromise(server) ? "; await the promise first" : `: ${by}(toMcpServer(registry))`;
  throw new TypeError(`${by} takes what toMcpServer returns${hint}.`);
}

/** Throws a `TypeError` that names the option and what it takes where options of a server cannot work. */
export function checkServerOptions(options: McpServerOptions): void {
  checkOptionsObject(options, NAMES);
  const { catalogue, identity, names, onWarning, store } = options;
  for (const name of ["name", "title", "version", "instructions"] as const) {
    checkOption(name, options[name], "a string", typeof options[name] === "string");
  }
  if (names !== undefined) checkOptionsObject(names, NAMING, "names.");
  checkOption("catalogue", catalogue, "true or false", typeof catalogue === "boolean");
  checkOption("identity", identity, "an object with a subject", typeof identity?.subject === "string");
  checkOption("onWarning", onWarning, "a function", typeof onWarning === "function");
  const awaited = isPromise(store) ? " (await the promise)" : "";
  checkOption("store", store, `an object with put and read${awaited}`, hasFunctions(store, ["put", "read"]));
  for (const name of ["formatOf", "inlineCharactersOf", "explainMissing"] as const) {
    checkOption(name, options[name], "a function", typeof options[name] === "function");
  }
  checkFormat("format", options.format);
  const { formats, providers } = options;
  checkList("formats", typeof formats === "function" ? formats() : formats, checkFormat);
  checkList("providers", isLive(providers) ? providers.current : providers, checkProvider);
  checkList("resources", options.resources, checkResource);
  checkList("resourceTemplates", options.resourceTemplates, checkTemplate);
  checkList("prompts", options.prompts, checkPrompt);
}

/** Tells whether providers come and go. */
export function isLive(providers: McpServerOptions["providers"]): providers is LiveMcpProviders {
  return hasFunctions(providers, ["onChange"]);
}

function checkList(name: string, list: unknown, check: (name: string, item: unknown) => void): void {
  checkOption(name, list, "a list", Array.isArray(list));
  for (const [i, item] of ((list ?? []) as readonly unknown[]).entries()) {
    // Left out is for whole options: in a list, it is a mistake like any other.
    check(`${name}[${i}]`, item ?? null);
  }
}

function checkFormat(name: string, format: unknown): void {
  const maker = typeof format === "string" ? JSON.stringify(format.slice(0, 80)) : "…";
  const wanted = `an object with write and outputSchema, such as createResultFormat(${maker})`;
  checkOption(name, format, wanted, isNamed(format) && hasFunctions(format, ["write", "outputSchema"]));
}

function checkProvider(name: string, provider: unknown): void {
  const awaited = isPromise(provider) ? " (await the promise)" : "";
  const isRight =
    isObject(provider) && isObject(provider["capabilities"]) && hasFunctions(provider, PROVIDER);
  checkOption(name, provider, `an McpProvider, such as what fromMcp resolves with${awaited}`, isRight);
}

function checkResource(name: string, resource: unknown): void {
  const { uri } = isObject(resource) ? resource : {};
  checkOption(name, resource, "an object with a name, a uri and read", isNamed(resource));
  const isUri = typeof uri === "string" && parseUrl(uri) !== undefined;
  checkOption(`${name}.uri`, uri ?? null, 'an absolute URI, such as "docs://intro"', isUri);
  checkMember(name, resource, "read");
}

function checkTemplate(name: string, template: unknown): void {
  const { uriTemplate } = isObject(template) ? template : {};
  checkOption(name, template, "an object with a name, a uriTemplate and read", isNamed(template));
  const isTemplate = typeof uriTemplate === "string" && uriTemplate !== "";
  checkOption(`${name}.uriTemplate`, uriTemplate ?? null, 'such as "docs://{page}"', isTemplate);
  checkMember(name, template, "read");
}

function checkPrompt(name: string, prompt: unknown): void {
  checkOption(name, prompt, "an object with a name and get", isNamed(prompt));
  const { arguments: args } = prompt as { readonly arguments?: unknown };
  const isRight = Array.isArray(args) && args.every(isNamed);
  checkOption(`${name}.arguments`, args, "a list of objects with a name", isRight);
  checkMember(name, prompt, "get");
}

function checkMember(name: string, item: unknown, member: string): void {
  const value = (item as Readonly<Record<string, unknown>>)[member];
  checkOption(`${name}.${member}`, value ?? null, "a function", typeof value === "function");
}

function isNamed(value: unknown): boolean {
  return isObject(value) && typeof value["name"] === "string" && value["name"] !== "";
}

function isPromise(value: unknown): boolean {
  return hasFunctions(value, ["then"]);
}

function hasFunctions(value: unknown, names: readonly string[]): boolean {
  return isObject(value) && names.every((name) => typeof value[name] === "function");
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
