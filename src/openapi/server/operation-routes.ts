import type { Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import { toJsonTextOrNone } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ExecuteOptions, Executor } from "../../core/registry/executor.ts";
import { EVENT_STREAM_HEADERS, EventStream } from "../../http/event-stream.ts";
import type { AuthenticatedRequest, HttpAnswer } from "../../http/exchange.ts";

/** What is told of operations, as plain data: a client reads the list or the one it needs, in place of the whole document. */
export interface OperationDirectory {
  /** Describes operations that the caller may call: in a few words, or with all that is known. */
  describe(operations: readonly AnyOperation[], whole: boolean): readonly object[];
  /** Describes where operations come from, as far as the caller may know it. */
  sources(identity: Identity | undefined): readonly object[];
}

/** Where operations are listed; one of them is at `/operations/<id>`. */
export const OPERATIONS_PATH = "/operations";

/** Which operations there are, and what is known of each. */
interface Listing {
  readonly directory: OperationDirectory;
  readonly executor: Executor;
}

/** Answers `GET /operations`: all that the caller may call, in a few words each; with `?whole=true` with all that is known. */
export function answerIndex(
  { directory, executor }: Listing,
  { request, identity }: AuthenticatedRequest,
): HttpAnswer {
  const whole = new URLSearchParams(request.query).get("whole") === "true";
  const operations = directory.describe(visibleTo(executor, identity), whole);
  return json({ operations, sources: directory.sources(identity) });
}

/** Answers `GET /operations/<id>`: all that is known of one; nothing where this caller has none of that id. */
export function answerOperationFacts(
  { directory, executor }: Listing,
  { identity }: AuthenticatedRequest,
  id: string,
): HttpAnswer | undefined {
  const operation = executor.get(id);
  if (operation === undefined || operation.visibility === "internal") return undefined;
  if (operation.access !== undefined && !visibleTo(executor, identity).includes(operation)) return undefined;
  const [facts] = directory.describe([operation], true);
  return facts && json(facts);
}

/** The id in a path below `/operations/`; nothing in another path. */
export function idInPath(path: string): string | undefined {
  if (!path.startsWith(`${OPERATIONS_PATH}/`)) return undefined;
  try {
    return decodeURIComponent(path.slice(OPERATIONS_PATH.length + 1));
  } catch {
    return undefined;
  }
}

function visibleTo(executor: Executor, identity: Identity | undefined): readonly AnyOperation[] {
  return executor.list({ identity }).filter(({ visibility }) => visibility !== "internal");
}

function json(value: object): HttpAnswer {
  const headers = { "content-type": "application/json", "cache-control": "private, no-cache" };
  return { status: 200, headers, body: JSON.stringify(value) };
}

/** Bytes of progress that may wait for a slow reader; what is more is left out, because the answer counts. */
const MOST_WAITING_BYTES = 1_048_576;
/** Characters of what a handler says at a time; more is left out. */
const MOST_CHARACTERS = 16_384;

/** Runs a call whose progress is told while it runs: the answer is a stream of `progress` and `log`, and at the end `answer`. */
export function answerWithProgress(
  run: (hears: Pick<ExecuteOptions, "onProgress" | "onLog">) => Promise<HttpAnswer>,
): HttpAnswer {
  const stream = new EventStream({ maxBytes: Number.POSITIVE_INFINITY });
  const tell = (event: string, value: unknown): void => {
    if (stream.waitingBytes >= MOST_WAITING_BYTES) return;
    const text = toJsonTextOrNone(value);
    if (text !== undefined && text.length <= MOST_CHARACTERS) stream.push(writeEvent(event, text));
  };
  const running = run({
    onProgress: (value) => tell("progress", value),
    onLog: ({ level, message, data }) => tell("log", { level, message, data }),
  });
  running
    .then(({ status, headers, body }) => {
      const type = JSON.stringify(headers["content-type"] ?? "");
      const text = typeof body === "string" ? `,"body":${body}` : "";
      stream.push(writeEvent("answer", `{"status":${status},"type":${type}${text}}`));
    })
    // What fails here fails in a way that no answer could be made of: the stream ends without one.
    .catch(() => {})
    .finally(() => stream.end());
  return { status: 200, headers: { ...EVENT_STREAM_HEADERS }, body: stream };
}

/** JSON text has no line breaks, so that one line of data is enough. */
function writeEvent(event: string, data: string): string {
  return `event: ${event}\ndata: ${data}\n\n`;
}

/** The error for an operation that is not there, or not for this caller. */
export function noSuchOperation(): CallError {
  return new CallError("OPERATION_NOT_FOUND", undefined, { stack: false });
}
