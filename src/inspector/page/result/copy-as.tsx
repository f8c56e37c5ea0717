import { isObject } from "../../../core/schema/json-schema.ts";
import { quotedWord } from "../../../core/text/clean-text.ts";
import "./result.css";
import type { Hello, OperationView } from "../../protocol.ts";
import { useSession } from "../page-session.ts";
import { CopyButton } from "../parts/controls.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { ownOf, withoutHidden } from "../parts/show-json.ts";

/** Offers a call as `curl`, as `waybill call` and as TypeScript, to be copied or read first. */
export function CopyAs({
  operation,
  input,
}: {
  readonly operation: OperationView;
  /** @default a call without input */
  readonly input?: { readonly value: unknown } | undefined;
}) {
  const { hello } = useSession();
  const call = { operation, input, hello, origin: location.origin };
  const isDescribed = hello.places.document !== undefined;
  const forms = [
    { name: "curl", text: asCurl(call) },
    { name: "waybill call", text: isDescribed ? asCommand(call) : undefined },
    { name: "TypeScript", text: isDescribed ? asTypeScript(call) : undefined },
  ].flatMap(({ name, text }) => (text === undefined ? [] : [{ name, text }]));
  // Without the HTTP API there is nothing that these would reach.
  if (forms.length === 0) return null;
  return (
    <div class="copy-as stack tight">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields */}
      <div class="row" role="group" aria-label="Copy this call">
        {forms.map(({ name, text }) => (
          <CopyButton key={name} label={`Copy as ${name}`} what={name} text={() => text} />
        ))}
      </div>
      <details>
        <summary class="soft small">Show the commands</summary>
        {forms.map(({ name, text }) => (
          <pre key={name} class="sheet">
            <PlainText text={text} />
          </pre>
        ))}
        {hello.isAuthOn && <p class="soft small">Set WAYBILL_TOKEN to your token first.</p>}
      </details>
    </div>
  );
}

/** A call that is to be made elsewhere. */
interface CopiedCall {
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
    pastedWord(url),
    ...(hello.isAuthOn ? [BEARER] : []),
    ...(isStream ? ["-H 'accept: text/event-stream'"] : []),
    ...(body === undefined ? [] : ["-H 'content-type: application/json'", `--data-raw ${pastedWord(body)}`]),
  ];
  // A request without a body is a GET unless it is said otherwise.
  if (body === undefined && operation.http.method !== "GET")
    words.splice(1, 0, `-X ${pastedWord(operation.http.method)}`);
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
  if (!isObject(value) || !isObject(properties)) return undefined;
  const pieces: string[] = [];
  for (const [name, member] of Object.entries(value)) {
    const schema = ownOf(properties, name);
    const isList = Array.isArray(member) && isObject(schema) && schema["type"] === "array";
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
  const where = /(?:^|\s)--url[\s=]/.test(flags) ? flags : `--url ${pastedWord(origin)}`;
  const given = input === undefined ? [] : [jsonText(input.value)];
  // A negative number would be taken for a flag.
  const end = given[0]?.startsWith("-") ? ["--"] : [];
  return [words, "call", pastedWord(operation.id), where, ...end, ...given.map(pastedWord)].join(" ");
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

// biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal acts on is what is looked for
const ACTED_ON = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;

/** Writes a text as one word of bash, zsh and fish, which take nothing in it for anything else. */
export function pastedWord(text: string): string {
  return ACTED_ON.test(text) ? escapedWord(text) : quotedWord(text);
}

/** A terminal that gets a text pasted may act on what it holds; so that goes as escapes, which bash, zsh and ksh read. */
function escapedWord(text: string): string {
  const bytes = (character: string): string =>
    [...new TextEncoder().encode(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  const body = [...text]
    .map((character) => {
      if (character === "\n") return "\\n";
      if (character === "\\" || character === "'" || character === "!") return bytes(character);
      return ACTED_ON.test(character) ? bytes(character) : character;
    })
    .join("");
  return `$'${body}'`;
}

/** Gives a file to the person, from memory; a browser opens none of it. */
export function saveFile(name: string, content: string | Uint8Array<ArrayBuffer>): void {
  const address = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has taken it by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Reads base64 that was checked. */
export function bytesOfBase64(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
