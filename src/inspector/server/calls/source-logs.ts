import { isPlainObject } from "../../../core/json/json-value.ts";
import { HIDDEN, hideBySchema } from "../../../gateway/hide-passwords.ts";
import type { SourceWire } from "../../../gateway/sources/source-traffic.ts";
import type { WireEvent } from "../../../mcp/channels/channel.ts";
import type { LogLineView } from "../../protocol.ts";
import {
  KEPT_LINE_CHARACTERS,
  KEPT_LINES_EACH,
  KEPT_LOG_CHARACTERS,
  KEPT_LOG_SOURCES,
  KEPT_NAME_CHARACTERS,
} from "../inspector-limits.ts";
import {
  type KeptText,
  KeptTexts,
  maskJson,
  readKept,
  type WrittenJson,
  writtenJson,
} from "./written-json.ts";

/** How much is remembered of logs. */
export interface SourceLogsOptions {
  /** Characters of all lines together. @default 4_194_304 */
  readonly characters?: number | undefined;
  /** Lines of one source. @default 500 */
  readonly linesEach?: number | undefined;
}

/** One line or message as it is remembered. */
interface LoggedLine {
  readonly n: number;
  readonly at: number;
  readonly type: WireEvent["type"];
  readonly method: string | undefined;
  /** The request of a caller that the message is about. */
  readonly requestId: string | undefined;
  readonly kept: KeptText;
}

/** Requests without an answer that are told apart of one source; an answer to an older one is of no call. */
const MOST_OPEN = 1_000;

interface SourceLog {
  readonly lines: LoggedLine[];
  /** What was asked of the server, by the id of the message. */
  readonly open: Map<number, { readonly method: string; readonly requestId: string | undefined }>;
}

/** The last messages and lines of standard error of each MCP server, as far as there is room. Secrets of the source are taken out before; those of the whole config when it is told. */
export class SourceLogs {
  readonly #linesEach: number;
  readonly #texts: KeptTexts;
  readonly #logs = new Map<string, SourceLog>();
  #n = 0;

  constructor({ characters = KEPT_LOG_CHARACTERS, linesEach = KEPT_LINES_EACH }: SourceLogsOptions = {}) {
    this.#texts = new KeptTexts(characters);
    this.#linesEach = linesEach;
  }

  /** Characters that are remembered now. */
  get characters(): number {
    return this.#texts.characters;
  }

  /** Remembers what passed. */
  take({ source, at, event, mask }: SourceWire): void {
    const log = this.#logOf(source);
    const line = lineOf(event, log.open);
    this.#n += 1;
    log.lines.push({
      ...line,
      n: this.#n,
      at,
      type: event.type,
      kept: this.#texts.keep(masked(line.written, mask)),
    });
    if (log.lines.length <= this.#linesEach) return;
    const oldest = log.lines.shift();
    if (oldest !== undefined) this.#texts.forget(oldest.kept);
  }

  /** What is remembered of a source, oldest first. */
  linesOf(source: string, after = 0): readonly LogLineView[] {
    const lines = this.#logs.get(source)?.lines ?? [];
    return lines.filter(({ n }) => n > after).map(toView);
  }

  /** The messages of one request of a caller, oldest first. */
  messagesOf(source: string, requestId: string): readonly LogLineView[] {
    const lines = this.#logs.get(source)?.lines ?? [];
    return lines.filter((line) => line.requestId === requestId).map(toView);
  }

  /** Forgets all. */
  close(): void {
    for (const { lines } of this.#logs.values()) for (const { kept } of lines) this.#texts.forget(kept);
    this.#logs.clear();
  }

  #logOf(source: string): SourceLog {
    const known = this.#logs.get(source);
    if (known !== undefined) return known;
    const [first] = this.#logs;
    if (this.#logs.size >= KEPT_LOG_SOURCES && first !== undefined) {
      for (const { kept } of first[1].lines) this.#texts.forget(kept);
      this.#logs.delete(first[0]);
    }
    const log: SourceLog = { lines: [], open: new Map() };
    this.#logs.set(source, log);
    return log;
  }
}

function masked(written: WrittenJson, mask: SourceWire["mask"]): WrittenJson {
  return "text" in written ? { text: maskJson(written.text, mask) } : written;
}

interface ReadLine {
  readonly method: string | undefined;
  readonly requestId: string | undefined;
  readonly written: WrittenJson;
}

function lineOf(event: WireEvent, open: SourceLog["open"]): ReadLine {
  switch (event.type) {
    case "stderr":
      return {
        method: undefined,
        requestId: undefined,
        written: writtenJson(event.line, KEPT_LINE_CHARACTERS),
      };
    case "sent":
      return sentLine(event, open);
    case "received":
      return receivedLine(event.message, open);
  }
}

function sentLine(
  { text, request }: Extract<WireEvent, { type: "sent" }>,
  open: SourceLog["open"],
): ReadLine {
  if (request === undefined) {
    const isShort = text.length <= KEPT_LINE_CHARACTERS;
    const written: WrittenJson = isShort ? { text } : { omitted: "too-long", characters: text.length };
    return { method: isShort ? methodIn(JSON.parse(text)) : undefined, requestId: undefined, written };
  }
  const { id, method, call } = request;
  const requestId = call?.requestId;
  open.set(id, { method, requestId });
  const [oldest] = open.keys();
  if (open.size > MOST_OPEN && oldest !== undefined) open.delete(oldest);
  const message = { jsonrpc: "2.0", id, method, params: request.params };
  const hide = (): unknown => ({ ...message, params: shownParams(request) });
  return { method, requestId, written: writtenJson(message, KEPT_LINE_CHARACTERS, hide) };
}

/** What a tool's schema says is a password is not shown; where there is none, no argument is. */
function shownParams({
  method,
  params,
  inputSchema,
}: NonNullable<Extract<WireEvent, { type: "sent" }>["request"]>): unknown {
  if (method !== "tools/call" || params?.["arguments"] === undefined) return params;
  const given = params["arguments"];
  return { ...params, arguments: inputSchema === undefined ? HIDDEN : hideBySchema(inputSchema, given) };
}

function receivedLine(message: unknown, open: SourceLog["open"]): ReadLine {
  const written = writtenJson(message, KEPT_LINE_CHARACTERS);
  if (!isPlainObject(message)) return { method: undefined, requestId: undefined, written };
  const { id, params } = message;
  const method = methodIn(message);
  if (method === undefined && typeof id === "number") {
    const asked = open.get(id);
    open.delete(id);
    return { method: asked?.method, requestId: asked?.requestId, written };
  }
  const token = isPlainObject(params) ? params["progressToken"] : undefined;
  const asked = typeof token === "number" ? open.get(token) : undefined;
  return { method, requestId: asked?.requestId, written };
}

function methodIn(message: unknown): string | undefined {
  const method = isPlainObject(message) ? message["method"] : undefined;
  return typeof method === "string" ? method.slice(0, KEPT_NAME_CHARACTERS) : undefined;
}

function toView({ n, at, type, method, kept }: LoggedLine): LogLineView {
  return { n, at, type, ...(method !== undefined && { method }), ...readKept(kept, (value) => ({ value })) };
}
