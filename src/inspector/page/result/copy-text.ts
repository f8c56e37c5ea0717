import type { Hello, OperationView } from "../../protocol.ts";
import { isMembers, ownOf, withoutHidden } from "../parts/json-text.ts";
import { shellWord } from "./shell-word.ts";

/** A call that is to be made elsewhere. */
export interface CopiedCall {
  readonly operation: OperationView;
  /** Left out where there is none. */
  readonly input?: { readonly value: unknown } | undefined;
  readonly hello: Hello;
  /** The origin of the gateway, such as `http://127.0.0.1:4100`. */
  readonly origin: string;
}

const BEARER = '-H "authorization: Bearer $WAYBILL_TOKEN"';

/** Writes the call as `curl`; nothing where the operation is not served over HTTP. */
export function asCurl({ operation, input, hello, origin }: CopiedCall): string | undefined {
  if (operation.http === undefined) return undefined;
  const { url, body } = requestOf(operation, input ?? emptyInput(operation), origin);
  const isStream = operation.type === "subscription";
  const words = [
    isStream ? "curl -N" : "curl",
    shellWord(url),
    ...(hello.isAuthOn ? [BEARER] : []),
    ...(isStream ? ["-H 'accept: text/event-stream'"] : []),
    ...(body === undefined ? [] : ["-H 'content-type: application/json'", `--data-raw ${shellWord(body)}`]),
  ];
  // A request without a body is a GET unless it is said otherwise.
  if (body === undefined && operation.http.method !== "GET")
    words.splice(1, 0, `-X ${shellWord(operation.http.method)}`);
  return words.join(" \\\n  ");
}

/** Where an object is wanted, nothing would be refused. */
function emptyInput({ inputSchema }: OperationView): CopiedCall["input"] {
  return inputSchema?.["type"] === "object" ? { value: {} } : undefined;
}

interface Asked {
  readonly url: string;
  readonly body: string | undefined;
}

/** Queries take simple inputs in their address; what an address cannot say goes to `/call`, which takes everything. */
function requestOf(
  { id, http, inputSchema }: OperationView,
  input: CopiedCall["input"],
  origin: string,
): Asked {
  const url = `${origin}${encodeURI(http?.path ?? "").replace(/%25([0-9a-f]{2})/gi, "%$1")}`;
  if (input === undefined) return { url, body: undefined };
  if (http?.method !== "GET") return { url, body: jsonText(input.value) };
  const query = queryOf(input.value, inputSchema?.["properties"] ?? {});
  if (query !== undefined) return { url: query === "" ? url : `${url}?${query}`, body: undefined };
  return { url: `${origin}/call`, body: jsonText({ operation: id, input: input.value }) };
}

/** Writes an input as a query; nothing where that would say something else. */
function queryOf(value: unknown, properties: unknown): string | undefined {
  if (!isMembers(value) || !isMembers(properties)) return undefined;
  const pieces: string[] = [];
  for (const [name, member] of Object.entries(value)) {
    const schema = ownOf(properties, name);
    const isList = Array.isArray(member) && isMembers(schema) && schema["type"] === "array";
    const items = isList ? (member as unknown[]) : [member];
    if (schema === undefined || items.length === 0 || !items.every(isSimple)) return undefined;
    for (const item of items) pieces.push(`${encodeURIComponent(name)}=${encodeURIComponent(String(item))}`);
  }
  return pieces.join("&");
}

/** Text that UTF-8 cannot hold, and so no address. */
const LONE_SURROGATE = /\p{Surrogate}/u;

function isSimple(value: unknown): boolean {
  if (typeof value === "string") return !LONE_SURROGATE.test(value);
  return typeof value === "boolean" || typeof value === "number";
}

/** Writes the call as `waybill call` against the gateway that answers here. */
export function asCommand({ operation, input, hello, origin }: CopiedCall): string {
  const { words, flags } = hello.command;
  const where = /(?:^|\s)--url[\s=]/.test(flags) ? flags : `--url ${shellWord(origin)}`;
  const given = input === undefined ? [] : [jsonText(input.value)];
  // A negative number would be taken for a flag.
  const end = given[0]?.startsWith("-") ? ["--"] : [];
  return [words, "call", shellWord(operation.id), where, ...end, ...given.map(shellWord)].join(" ");
}

/** Writes the call as a program in TypeScript that needs nothing but the package. */
export function asTypeScript(call: CopiedCall): string {
  const { operation, hello, origin } = call;
  const input = call.input ?? emptyInput(operation);
  const auth = hello.isAuthOn ? `\n  auth: { bearer: process.env["WAYBILL_TOKEN"] ?? "" },` : "";
  const given = input === undefined ? "" : `, ${expressionOf(input.value)}`;
  const asked = `(${JSON.stringify(operation.id)}${given})`;
  const body =
    operation.type === "subscription"
      ? `for await (const value of client.subscribe${asked}) {\n  console.log(value);\n}`
      : `console.log(await client.call${asked});`;
  return `import { createClient, OperationRegistry } from "waybill";
import { fromOpenApi } from "waybill/openapi";

const gateway = await fromOpenApi(${JSON.stringify(`${origin}/openapi.json`)}, {
  namespace: "gateway",
  keepIds: true,${auth}
});
const registry = new OperationRegistry();
registry.registerAll(gateway);
const client = createClient(registry);
${body}
await gateway.close();
`;
}

/** JSON is TypeScript, but for a member that would set the prototype. */
function expressionOf(value: unknown): string {
  const json = withoutHidden(JSON.stringify(value, undefined, 2));
  if (!json.includes('"__proto__"')) return json;
  return `JSON.parse(${JSON.stringify(jsonText(value))})`;
}

function jsonText(value: unknown): string {
  return withoutHidden(JSON.stringify(value));
}
