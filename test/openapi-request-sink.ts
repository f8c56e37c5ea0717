import fc from "fast-check";
import { Pool } from "undici";
import { afterAll, beforeAll, expect } from "vitest";
import { isCallError } from "../src/index.ts";
import type { OutgoingRequest } from "../src/openapi/client/http-message.ts";
import { createRequestBuilder, finishRequest } from "../src/openapi/client/request/request-builder.ts";
import type { OperationPlan } from "./operation-plans.ts";
import { createTcpSink, type RawRequest, type TcpSink } from "./tcp-sink.ts";

export type { OutgoingRequest } from "../src/openapi/client/http-message.ts";

/** Text that has broken clients before. */
const AWKWARD = [
  "..",
  ".",
  "../",
  "../../etc/passwd",
  "%2e%2e",
  "%2E%2e%2f",
  "%2f",
  "a/b",
  "a\\b",
  "\\..\\",
  "a?b=c",
  "a#b",
  ";x=y",
  "a&b=c",
  "a=b",
  "a+b c",
  "\r\nx-evil: 1",
  "a\r\n\r\nGET /evil HTTP/1.1\r\nhost: x\r\n\r\n",
  "\n",
  "\0",
  "\t",
  " ",
  " a ",
  "",
  "a, b",
  'a"b',
  "a; b=c",
  "\ud800",
  "\udc00x",
  "é",
  "日本",
  "😀",
  "\u2028",
  "\u00a0",
  "\ufeff",
  "%",
  "%zz",
  "%0d%0a",
  "{x}",
  "[x]",
  "|",
  "__proto__",
  "--",
  "\u007f",
  "\u0130",
];

/** Any text at all, half surrogates and control characters included. */
export const anyText = fc.oneof(
  fc.constantFrom(...AWKWARD),
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  fc.array(fc.constantFrom(...AWKWARD), { maxLength: 4 }).map((parts) => parts.join("")),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 8 })
    .map((units) => String.fromCharCode(...units)),
);

/** Everything that can be sent at all. */
export const wholeText = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom(...AWKWARD)).filter(isWhole);

function isWhole(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

let sink: TcpSink;
let pool: Pool;

/** Listens while the tests of a file run; what they build is sent there. */
export function useRequestSink(): void {
  beforeAll(async () => {
    sink = await createTcpSink();
    pool = new Pool(sink.origin, { connections: 1, pipelining: 1 });
  });
  afterAll(async () => {
    await pool.destroy();
    await sink.close();
  });
}

/** Builds a request for the sink, below `/base`. */
export function buildRequest(plan: OperationPlan, input: unknown): OutgoingRequest {
  return finishRequest(createRequestBuilder(plan, { baseUrl: `${sink.origin}/base`, limits: {} })(input), {});
}

/** Sends a request and takes what arrived. */
export async function send({ method, path, headers, body }: OutgoingRequest): Promise<RawRequest[]> {
  const response = await pool.request({ method, path, headers, body: body ?? null });
  await response.body.dump();
  return sink.take();
}

/** Sends what a plan makes of an input to `/base`; nothing where the input is refused. */
export async function sendInput(plan: OperationPlan, input: unknown): Promise<RawRequest | undefined> {
  let request: OutgoingRequest;
  try {
    request = buildRequest(plan, input);
  } catch (error) {
    if (!isCallError(error)) throw error;
    expect(error.code).toBe("VALIDATION_ERROR");
    return undefined;
  }
  const [first, ...more] = await send(request);
  expect(more).toEqual([]);
  if (first === undefined) throw new Error("Nothing arrived.");
  return first;
}

/** Headers that every request has. */
export const ALWAYS = ["accept", "connection", "host", "user-agent"];

/** Header names in order, without those that every request has. */
export function ownHeaders({ headers }: RawRequest): string[] {
  const names = headers.map(([name]) => name).sort();
  for (const name of ALWAYS) expect(names.filter((each) => each === name)).toHaveLength(1);
  return names.filter((name) => !ALWAYS.includes(name));
}

/** The first value of a header, named in lower case. */
export function headerOf({ headers }: RawRequest, wanted: string): string | undefined {
  return headers.find(([name]) => name === wanted)?.[1];
}

/** The path and the query that arrived. */
export function splitTarget({ target }: RawRequest): { path: string; query: string } {
  expect(target).not.toContain("#");
  const [path = "", ...rest] = target.split("?");
  // A URL parser, which is what stands in front of most servers, sees the same path.
  expect(new URL(`http://x.example${target}`).pathname).toBe(path);
  return { path, query: rest.join("?") };
}
