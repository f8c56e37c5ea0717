import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ExecuteOptions } from "../../core/registry/executor.ts";
import { SourceSecrets } from "../../core/secrets/secret-mask.ts";
import { decodeEnvelope, toWire } from "../../core/wire/wire.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import { type HopReader, readHopOutcome } from "../../openapi/client/response/hop-outcome.ts";
import { DATA_TYPE, ENVELOPE_TYPE } from "../../openapi/media-types.ts";
import { assertSourceNames } from "./target-config.ts";

/** What commands use of a gateway: one in this process, or one that runs elsewhere. */
export interface SessionGateway {
  readonly executor: {
    readonly operations: Iterable<AnyOperation>;
    get(id: string): AnyOperation | undefined;
    execute(id: string, input: unknown, options: ExecuteOptions): Promise<ResponseEnvelope>;
    subscribe(id: string, input: unknown, options: ExecuteOptions): AsyncIterable<ResponseEnvelope>;
  };
  readonly sources: readonly Pick<SourceReport, "name" | "kind" | "state">[];
  sourceOf(operationId: string): string | undefined;
  reports(): readonly SourceReport[];
  /** Starts a call that goes on as a task, and gives its id. @default what is called ends with this process */
  readonly start?: ((id: string, input: unknown, options: ExecuteOptions) => Promise<string>) | undefined;
  /** Reads what a result links to, from the source of that name. */
  readonly readLink?: ((source: string, uri: string) => Promise<unknown>) | undefined;
}

/** Where a gateway is, and with what it is spoken to. */
export interface RemoteAddress {
  /** Scheme, host, port, and the path that comes before its own. */
  readonly base: string;
  readonly token?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** An answer of a gateway that is not what was asked for; `status` is 0 where nothing answers. */
export class RemoteFault extends Error {
  override readonly name = "RemoteFault";
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** Bytes of one answer. */
const MOST_BYTES = 268_435_456;
/** Milliseconds that sources which still start are waited for, and after which they are looked at again. */
const STARTING_MS = 30_000;
const POLL_MS = 250;
/** Milliseconds beyond its own time that a call is waited for. */
const GRACE_MS = 2_000;

/** What is wanted of a running gateway. */
export interface RemoteOptions {
  /** The one operation that is needed. @default all */
  readonly forOperation?: string | undefined;
  /** Whether all is needed that is known of them, schemas included; of one it is. @default false */
  readonly whole?: boolean | undefined;
  /** Sources that are looked at. @default all */
  readonly sources?: readonly string[] | undefined;
  /** Milliseconds that sources which still start are waited for. @default 30_000 */
  readonly patienceMs?: number | undefined;
}

/** Reads which operations a running gateway has. Throws a `RemoteFault`, with status 404 where it cannot tell. */
export async function openRemoteGateway(
  address: RemoteAddress,
  options: RemoteOptions,
): Promise<SessionGateway> {
  const until = performance.now() + (options.patienceMs ?? STARTING_MS);
  for (;;) {
    const found = await look(address, options);
    if (found.isWhole || performance.now() >= until)
      return new RemoteGateway(address, found.rows, found.reports);
    await sleep(POLL_MS, undefined, { signal: address.signal });
  }
}

async function look(
  address: RemoteAddress,
  { forOperation, whole, sources }: RemoteOptions,
): Promise<GatewayContents> {
  const isWanted = (source: unknown): boolean => sources === undefined || sources.includes(String(source));
  if (forOperation !== undefined) {
    const facts = await readFacts(address, `/operations/${encodeURIComponent(forOperation)}`);
    if (facts !== undefined && isWanted(facts["source"]))
      return { rows: [facts], reports: [], isWhole: true };
  }
  const index = await readFacts(address, `/operations${whole ? "?whole=true" : ""}`);
  if (index === undefined || !Array.isArray(index["operations"]) || !Array.isArray(index["sources"]))
    throw new RemoteFault(404, "It lists no operations.");
  const all = index["sources"].filter(isReport);
  assertSourceNames(
    sources ?? [],
    all.map(({ name }) => name),
  );
  const rows = index["operations"].filter((row) => isPlainObject(row) && isWanted(row["source"]));
  const reports = all.filter(({ name }) => isWanted(name));
  const late = reports.filter(({ state }) => state.status === "connecting");
  return { rows, reports, isWhole: !late.some((report) => mayHold(report, forOperation)) };
}

/** What a gateway said it has. */
interface GatewayContents {
  readonly rows: readonly unknown[];
  readonly reports: readonly SourceReport[];
  /** Whether nothing that is looked for still starts. */
  readonly isWhole: boolean;
}

/** Whether an operation may come from a source; modules and the bus hold any namespace. */
function mayHold({ name, kind }: SourceReport, id: string | undefined): boolean {
  return id === undefined || kind === "local" || kind === "bus" || id.startsWith(`${name}.`);
}

/** Reads JSON; nothing where there is none at that path. */
async function readFacts(address: RemoteAddress, path: string): Promise<Record<string, unknown> | undefined> {
  const answer = await ask(address, path, { accept: "application/json" });
  const text = await readText(answer);
  const { statusCode: status = 0 } = answer;
  const value = parseJsonTextOrNone(text);
  if (status === 200 && isPlainObject(value)) return value;
  if (status === 404 || status === 503) return undefined;
  throw new RemoteFault(status, isPlainObject(value) ? String(value["detail"] ?? "") : "");
}

/** What a gateway answered: JSON, or nothing where it was none. */
export interface GatewayAnswer {
  readonly status: number;
  readonly value: unknown;
}

/** Asks a running gateway for something as JSON, or sends it JSON; a `RemoteFault` where nothing answers. */
export async function askGateway(
  address: RemoteAddress,
  path: string,
  body: string | undefined,
): Promise<GatewayAnswer> {
  const type = body === undefined ? {} : { body, "content-type": "application/json" };
  const answer = await ask(address, path, { accept: "application/json", ...type });
  return { status: answer.statusCode ?? 0, value: parseJsonTextOrNone(await readText(answer)) };
}

/** An answer about a task, as it came. */
export interface TaskAnswer extends GatewayAnswer {
  readonly type: string;
  readonly text: string;
}

/** Asks a running gateway about a task; a `RemoteFault` where nothing answers. */
export async function askTask(
  address: RemoteAddress,
  path: string,
  { accept = "application/json", ...more }: { readonly [Name in "method" | "prefer" | "accept"]?: string },
): Promise<TaskAnswer> {
  const answer = await readAnswer(await ask(address, path, { accept, ...more }));
  return { ...answer, value: parseJsonTextOrNone(answer.text) };
}

async function readAnswer(answer: IncomingMessage): Promise<Omit<TaskAnswer, "value">> {
  return { status: answer.statusCode ?? 0, type: typeOf(answer), text: await readText(answer) };
}

class RemoteGateway implements SessionGateway {
  readonly executor: SessionGateway["executor"];
  readonly sources: readonly SourceReport[];
  readonly start: NonNullable<SessionGateway["start"]>;
  readonly #sourceNames = new Map<string, string>();

  constructor(address: RemoteAddress, rows: readonly unknown[], sources: readonly SourceReport[]) {
    const operations = new Map<string, AnyOperation>();
    for (const row of rows) {
      const operation = toOperation(row);
      if (operation === undefined) continue;
      operations.set(operation.id, operation);
      const { source } = row as Record<string, unknown>;
      if (typeof source === "string") this.#sourceNames.set(operation.id, source);
    }
    this.sources = sources;
    this.executor = {
      operations: [...operations.values()],
      get: (id) => operations.get(id),
      execute: (id, input, options) => execute({ address, id, input, options }),
      subscribe: (id, input, options) => subscribe({ address, id, input, options }),
    };
    this.start = (id, input, options) => start({ address, id, input, options });
  }

  sourceOf(operationId: string): string | undefined {
    return this.#sourceNames.get(operationId);
  }

  reports(): readonly SourceReport[] {
    return this.sources;
  }
}

/** What a gateway says of an operation, as one; it runs there alone. */
function toOperation(row: unknown): AnyOperation | undefined {
  if (!isPlainObject(row)) return undefined;
  const { id, type, description = "" } = row;
  const dot = typeof id === "string" ? id.indexOf(".") : -1;
  if (typeof id !== "string" || dot < 1 || typeof description !== "string") return undefined;
  if (type !== "query" && type !== "mutation" && type !== "subscription") return undefined;
  const name = { namespace: id.slice(0, dot), name: id.slice(dot + 1) };
  return { ...row, ...name, id, type, description, handler: () => undefined } as unknown as AnyOperation;
}

function isReport(value: unknown): value is SourceReport {
  if (!isPlainObject(value)) return false;
  const { name, kind, target, state, operations, unusable, notes } = value;
  return (
    [name, kind, target].every((text) => typeof text === "string") &&
    isPlainObject(state) &&
    typeof state["status"] === "string" &&
    (state["status"] !== "down" || typeof state["reason"] === "string") &&
    typeof operations === "number" &&
    Array.isArray(unusable) &&
    Array.isArray(notes)
  );
}

/** A call, as it goes out. */
interface RemoteCall {
  readonly address: RemoteAddress;
  readonly id: string;
  readonly input: unknown;
  readonly options: ExecuteOptions;
}

async function execute(call: RemoteCall): Promise<ResponseEnvelope> {
  const { onProgress } = call.options;
  const isHeard = onProgress !== undefined;
  const answer = await post(call, { accept: isHeard ? "text/event-stream" : ENVELOPE_TYPE });
  if (!isHeard || !typeOf(answer).startsWith("text/event-stream"))
    return settle(call, await readAnswer(answer));
  for await (const { event, data } of readEvents(answer)) {
    const value = parseJsonTextOrNone(data);
    if (event === "progress") onProgress(value);
    if (event !== "answer" || !isPlainObject(value)) continue;
    const { status, type, body = null } = value;
    return settle(call, { status: Number(status), type: String(type), text: JSON.stringify(body) });
  }
  throw wasCut(call);
}

async function start(call: RemoteCall): Promise<string> {
  const answer = await readAnswer(await post(call, { accept: ENVELOPE_TYPE, prefer: "respond-async" }));
  const task = answer.status === 202 ? parseJsonTextOrNone(answer.text) : undefined;
  if (isPlainObject(task) && typeof task["id"] === "string") return task["id"];
  settle(call, answer);
  throw new CallError("NOT_IMPLEMENTED", "The gateway keeps no tasks: it answered the call itself.", {
    stack: false,
  });
}

async function* subscribe(call: RemoteCall): AsyncGenerator<ResponseEnvelope, void> {
  const answer = await post(call, { accept: "text/event-stream" }, "?waybill-format=envelope");
  if (!typeOf(answer).startsWith("text/event-stream")) {
    settle(call, await readAnswer(answer));
    throw wasCut(call);
  }
  try {
    for await (const { event, data } of readEvents(answer)) {
      if (event === "done") return;
      const value = parseJsonTextOrNone(data);
      if (!isPlainObject(value)) continue;
      if (event === "error") throw errorOf(call, Number(value["status"]), value);
      if (event === "next") yield decodeEnvelope(JSON.stringify(value["envelope"] ?? null));
    }
  } finally {
    answer.destroy();
  }
  throw wasCut(call);
}

function post(
  { address, id, input, options }: RemoteCall,
  { accept, ...more }: Readonly<Record<"accept", string>> & Asked,
  query = "",
): Promise<IncomingMessage> {
  const { timeoutMs, signal, metadata } = options;
  const call = { operation: id, input, ...(timeoutMs !== undefined && { timeoutMs }) };
  const wire = toWire(call, { errors: false });
  const key = metadata?.["idempotencyKey"];
  const late = timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs + GRACE_MS)];
  const signals = [...(signal === undefined ? [] : [signal]), ...late];
  return ask(
    { ...address, ...(signals.length > 0 && { signal: AbortSignal.any(signals) }) },
    `/call${query}`,
    {
      accept,
      "content-type": Object.is(wire, call) ? "application/json" : DATA_TYPE,
      ...(typeof key === "string" && { "idempotency-key": key }),
      ...more,
      body: JSON.stringify(wire),
    },
  ).catch((thrown: unknown) => {
    if (late[0]?.aborted === true) throw new CallError("TIMEOUT", undefined, { cause: thrown, stack: false });
    if (!(thrown instanceof RemoteFault)) throw thrown;
    throw new CallError("UNAVAILABLE", "The gateway cannot be reached.", { cause: thrown, stack: false });
  });
}

/** Makes an envelope of an answer, or throws what it says. */
function settle(call: RemoteCall, { status, type, text }: Omit<TaskAnswer, "value">): ResponseEnvelope {
  if (type.startsWith(ENVELOPE_TYPE)) return decodeEnvelope(text);
  throw errorOf(call, status, parseJsonTextOrNone(text));
}

/** The gateway is one that the user named or runs: what it says of an error is shown as it is. */
function errorOf({ id }: RemoteCall, status: number, problem: unknown): CallError {
  const message = `The gateway answered ${status} to "${id}".`;
  const code = isPlainObject(problem) && typeof problem["code"] === "string" ? [problem["code"]] : [];
  const reader: HopReader = {
    operationId: id,
    declared: new Set(code),
    isServed: true,
    isTrusted: true,
    message,
    secrets: new SourceSecrets(),
  };
  const hop = readHopOutcome(problem, status, reader);
  return hop?.outcome === "call-error" ? hop.error : new CallError("UNAVAILABLE", message, { stack: false });
}

function wasCut({ id }: RemoteCall): CallError {
  const message = `The gateway ended its answer to "${id}" too early.`;
  return new CallError("UNAVAILABLE", message, { retryable: true, stack: false });
}

function typeOf({ headers }: IncomingMessage): string {
  return headers["content-type"] ?? "";
}

/** What is asked: headers, a body for what is posted, and a method where it is another one. */
type Asked = Readonly<Record<string, string>>;

/** Sends a request; redirects are not followed, because a token went with it. */
function ask(
  address: RemoteAddress,
  path: string,
  { body, method = body === undefined ? "GET" : "POST", ...headers }: Asked,
): Promise<IncomingMessage> {
  const { base, token, signal } = address;
  const send = base.startsWith("https:") ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send(`${base}${path}`, {
      method,
      agent: false,
      ...(signal !== undefined && { signal }),
      headers: {
        ...headers,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { "content-length": Buffer.byteLength(body) }),
      },
    });
    request.on("response", resolve);
    request.on("error", (cause: NodeJS.ErrnoException) => {
      if (signal?.aborted) reject(signal.reason);
      else reject(new RemoteFault(0, cause.code ?? "It cannot be reached.", { cause }));
    });
    request.end(body);
  });
}

async function readText(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MOST_BYTES) throw tooMuch(answer);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

interface ReadEvent {
  readonly event: string;
  readonly data: string;
}

/** Reads the events of a stream as our servers write them: one line of data each. */
async function* readEvents(answer: IncomingMessage): AsyncGenerator<ReadEvent, void> {
  const decoder = new TextDecoder();
  // Pieces are joined where an event ends, and looked through once.
  let pieces: string[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    const piece = decoder.decode(chunk, { stream: true });
    length += piece.length;
    if (length > MOST_BYTES) throw tooMuch(answer);
    const isEnd = piece.includes("\n\n") || (piece.startsWith("\n") && pieces.at(-1)?.endsWith("\n"));
    if (piece !== "") pieces.push(piece);
    if (!isEnd) continue;
    const blocks = pieces.join("").split("\n\n");
    const rest = blocks.pop() ?? "";
    pieces = rest === "" ? [] : [rest];
    length = rest.length;
    for (const block of blocks) {
      const event = fieldIn(block, "event: ");
      const data = fieldIn(block, "data: ");
      if (event !== undefined && data !== undefined) yield { event, data };
    }
  }
}

/** The rest of the line that begins so; only a line feed ends a line here, and JSON may hold what ends lines elsewhere. */
function fieldIn(block: string, start: string): string | undefined {
  return block
    .split("\n")
    .find((line) => line.startsWith(start))
    ?.slice(start.length);
}

function tooMuch(answer: IncomingMessage): CallError {
  answer.destroy();
  return new CallError("TOO_LARGE", `The gateway answered more than ${MOST_BYTES} bytes.`, { stack: false });
}
