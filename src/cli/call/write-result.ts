import { lstatSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { parse, resolve } from "node:path";
import { isErrorEnvelope, type ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { type CallError, isCallError } from "../../core/errors/errors.ts";
import { randomId } from "../../core/execution/call-context.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import { type FormatName, textOf } from "../../core/result/tool-result.ts";
import { safeLine, safeText } from "../../core/text/clean-text.ts";
import { decodeBase64 } from "../../core/wire/base64.ts";
import { CommandError, type Io } from "../io.ts";
import { createStyle, paintJson, toSafeJson, writeOut } from "../terminal/style.ts";

/** How results are written. */
export interface WriteFlags {
  readonly envelope?: boolean;
  readonly format?: FormatName;
  readonly raw?: boolean;
  readonly output?: string;
  readonly json?: boolean;
}

/** Writes the results of one call. */
export interface ResultWriter {
  /** The one result of a call. */
  write(envelope: ResponseEnvelope): Promise<void>;
  /** One of several results. */
  line(envelope: ResponseEnvelope): Promise<void>;
  /** A call that failed, where the format has words for that; tells whether it has. */
  failure(error: CallError): Promise<boolean>;
  /** All has been written. */
  end(): Promise<void>;
}

/** What the writer of one call is told. */
export interface ResultWriterOptions {
  readonly operation: AnyOperation;
  readonly flags: WriteFlags;
  /** Reads what a link of the result leads to, for `--output`. @default links are told and not followed */
  readonly readLink?: ((uri: string) => Promise<unknown>) | undefined;
}

/** Creates the writer that the flags ask for: to stdout, or to a file. */
export function createResultWriter(io: Io, options: ResultWriterOptions): ResultWriter {
  const { operation, flags } = options;
  const writing: Writing = { io, ...options };
  const lines: string[] = [];
  const put = async (text: string): Promise<void> => {
    if (flags.output === undefined) await writeOut(io, text);
    else lines.push(text);
  };
  let isWritten = false;
  return {
    async write(envelope) {
      if (flags.output !== undefined) {
        isWritten = true;
        return saveResult(writing, envelope, flags.output);
      }
      await put(endedLine(await shown(writing, envelope, isPretty(io, flags))));
    },
    async line(envelope) {
      await put(`${await shown(writing, envelope, false)}\n`);
    },
    async failure(error) {
      if (flags.format === undefined || flags.format === "response-envelope") return false;
      const written = await formatted(endedCall(operation, { error }), flags.format);
      await put(`${print(io, written, { pretty: isPretty(io, flags) })}\n`);
      return true;
    },
    async end() {
      if (flags.output !== undefined && lines.length > 0 && !isWritten)
        await save(io, flags.output, lines.join(""));
    },
  };
}

/** Text that ends its last line itself gets no second end. */
function endedLine(text: string): string {
  return text.endsWith("\n") ? text : `${text}\n`;
}

function isPretty(io: Io, flags: WriteFlags): boolean {
  return io.stdout.isTTY === true && !flags.json;
}

interface Writing extends ResultWriterOptions {
  readonly io: Io;
}

async function shown(
  { io, operation, flags }: Writing,
  envelope: ResponseEnvelope,
  pretty: boolean,
): Promise<string> {
  const isTerminal = io.stdout.isTTY === true && flags.output === undefined;
  if (flags.raw || (isTerminal && isBare(flags))) {
    const text = textOfResult(envelope);
    // On a terminal, no line of a result looks like one of ours.
    if (text !== undefined)
      return isTerminal ? safeText(text).replace(/^waybill:/gm, " waybill:") : safeText(text);
  }
  const value = await resultValue(envelope, operation, flags);
  const painted = isTerminal && !flags.json;
  return print(io, isTerminal ? withoutBytes(value) : value, { pretty, painted });
}

/** Whether nothing was said of how the result is written. */
function isBare({ envelope, format, json }: WriteFlags): boolean {
  return !envelope && format === undefined && !json;
}

interface PrintOptions {
  readonly pretty: boolean;
  /** @default as `pretty` says */
  readonly painted?: boolean;
}

function print(io: Io, value: unknown, { pretty, painted = pretty }: PrintOptions): string {
  const json = toSafeJson(value, pretty ? 2 : 0);
  return painted ? paintJson(json, createStyle(io.stdout, io.env)) : json;
}

async function resultValue(
  envelope: ResponseEnvelope,
  operation: AnyOperation,
  flags: WriteFlags,
): Promise<unknown> {
  if (flags.envelope || flags.format === "response-envelope") return plainEnvelope(envelope);
  if (flags.format !== undefined) return formatted(endedCall(operation, { envelope }), flags.format);
  return envelope.data;
}

function plainEnvelope({ data, meta }: ResponseEnvelope): unknown {
  return { data: data === undefined ? null : data, meta };
}

function endedCall(operation: AnyOperation, outcome: EndedCall["outcome"]): EndedCall {
  const durationMs = "envelope" in outcome ? (outcome.envelope.meta.waybill?.durationMs ?? 0) : 0;
  return {
    operationId: operation.id,
    operation,
    requestId: randomId(),
    identity: undefined,
    durationMs,
    outcome,
  };
}

async function formatted(
  call: EndedCall,
  format: Exclude<FormatName, "response-envelope">,
): Promise<unknown> {
  const { createResultFormat } = await import("../../formats/index.ts");
  return createResultFormat(format).write(call);
}

/** Saves what `--output` names: the images, sounds and files of a result, each as itself, or else its text, or else its data as JSON. */
async function saveResult(writing: Writing, envelope: ResponseEnvelope, file: string): Promise<void> {
  const { io, operation, flags } = writing;
  const json = async (): Promise<string> =>
    `${toSafeJson(await resultValue(envelope, operation, flags), 2)}\n`;
  if (!isBare(flags)) return save(io, file, await json());
  const found = await filesOfResult(writing, envelope);
  if (found.length === 0) return save(io, file, textOfResult(envelope) ?? (await json()));
  const [only] = found;
  if (found.length === 1 && only !== undefined) await save(io, file, only.bytes, only);
  else await saveNumbered(io, file, found);
  // What stands beside the files is not lost.
  const beside = hasOwnData(envelope) ? await json() : textBeside(envelope);
  if (beside !== "") await writeOut(io, `${safeText(beside).trimEnd()}\n`);
}

/** Files of one result that are saved. */
const MOST_FILES = 100;

/** Saves several files, each under a number that is free: their names were not given, so that nothing is written over. */
async function saveNumbered(io: Io, file: string, found: readonly FoundBytes[]): Promise<void> {
  let count = 0;
  for (const { bytes, mediaType } of found.slice(0, MOST_FILES)) {
    do count += 1;
    while (lstatSync(resolve(io.cwd, numbered(file, count)), { throwIfNoEntry: false }) !== undefined);
    await save(io, numbered(file, count), bytes, { mediaType, flag: "wx" });
  }
  if (found.length > MOST_FILES && !io.quiet)
    io.stderr.write(`waybill: ${found.length - MOST_FILES} more files of the result are not saved.\n`);
}

/** `shot.png` as `shot-2.png`. */
function numbered(file: string, count: number): string {
  const { dir, name, ext, root } = parse(file);
  const folder = dir === "" || dir === root ? dir : `${dir}/`;
  return `${folder}${name}-${count}${ext}`;
}

interface SaveOptions {
  readonly mediaType?: string;
  /** `wx` fails where a file or a link is there. @default "w" */
  readonly flag?: "w" | "wx";
}

async function save(
  io: Io,
  file: string,
  content: string | Uint8Array,
  { mediaType, flag = "w" }: SaveOptions = {},
): Promise<void> {
  const path = resolve(io.cwd, file);
  try {
    await writeFile(path, content, { flag });
  } catch (cause) {
    const { code = "unknown" } = cause as NodeJS.ErrnoException;
    throw new CommandError(`The file "${safeLine(file, 200)}" cannot be written (${code}).`, undefined, {
      cause,
    });
  }
  const size = typeof content === "string" ? Buffer.byteLength(content) : content.length;
  const what = mediaType === undefined ? "" : ` of ${safeLine(mediaType, 80)}`;
  if (!io.quiet) io.stderr.write(`waybill: wrote ${size} bytes${what} to ${safeLine(file, 200)}\n`);
}

/** Bytes found in a result, and what they are. */
interface FoundBytes {
  readonly bytes: Uint8Array;
  readonly mediaType: string;
}

const ANY_BYTES = "application/octet-stream";
/** Links of one result that are followed. */
const MOST_LINKS = 20;

/** The files of a result: data that is bytes, or the images, sounds, embedded files and links of a tool result. */
async function filesOfResult(writing: Writing, envelope: ResponseEnvelope): Promise<readonly FoundBytes[]> {
  const { data, meta } = envelope;
  if (data instanceof Uint8Array) {
    return [{ bytes: data, mediaType: meta.source === "http" ? meta.contentType || ANY_BYTES : ANY_BYTES }];
  }
  const found: FoundBytes[] = [];
  let links = 0;
  for (const block of blocksOf(envelope)) {
    const bytes = bytesOfBlock(block);
    if (bytes !== undefined) found.push(bytes);
    else if (block["type"] === "resource_link" && !isErrorEnvelope(envelope) && links++ < MOST_LINKS)
      found.push(...(await filesOfLink(writing, String(block["uri"]))));
  }
  return found;
}

async function filesOfLink({ io, readLink }: Writing, uri: string): Promise<readonly FoundBytes[]> {
  const shown = safeLine(uri, 300);
  try {
    const read = await readLink?.(uri);
    const contents = isPlainObject(read) && Array.isArray(read["contents"]) ? read["contents"] : [];
    const found = contents.flatMap((content) => fileOfContent(content) ?? []);
    if (found.length > 0) return found;
    if (!io.quiet) io.stderr.write(`waybill: the result links to ${shown}, which is not saved.\n`);
  } catch (thrown) {
    if (!isCallError(thrown)) throw thrown;
    const why = safeLine(thrown.message, 300);
    io.stderr.write(`waybill: the result links to ${shown}, which cannot be read: ${why}\n`);
  }
  return [];
}

function fileOfContent(content: unknown): FoundBytes | undefined {
  if (!isPlainObject(content)) return undefined;
  const { text, mimeType } = content;
  if (typeof text !== "string") return bytesOfBlock(content);
  return { bytes: Buffer.from(text), mediaType: typeof mimeType === "string" ? mimeType : "text/plain" };
}

/** The content blocks of a tool result; none of any other. */
function blocksOf({ meta }: ResponseEnvelope): readonly Record<string, unknown>[] {
  const blocks: readonly unknown[] = meta.source === "mcp" ? meta.content : [];
  return blocks.filter(isPlainObject);
}

function bytesOfBlock(block: Record<string, unknown>): FoundBytes | undefined {
  const held = block["type"] === "resource" && isPlainObject(block["resource"]) ? block["resource"] : block;
  const text = held["type"] === "image" || held["type"] === "audio" ? held["data"] : held["blob"];
  const bytes = typeof text === "string" ? decodeBase64(text) : undefined;
  if (bytes === undefined) return undefined;
  const { mimeType } = held;
  return { bytes, mediaType: typeof mimeType === "string" ? mimeType : ANY_BYTES };
}

/** Whether a result has data of its own: of a tool that gave none, the data is its content blocks. */
function hasOwnData({ data, meta }: ResponseEnvelope): boolean {
  if (data instanceof Uint8Array) return false;
  return meta.source !== "mcp" || meta.waybill?.obtained !== "content" || !Array.isArray(data);
}

/** What a result says as text: data that is text, or the blocks of a tool result; nothing where it has other data. */
function textOfResult(envelope: ResponseEnvelope): string | undefined {
  const { data } = envelope;
  if (typeof data === "string") return data;
  if (hasOwnData(envelope) || data instanceof Uint8Array) return undefined;
  return blocksOf(envelope).map(wordsOfBlock).join("\n");
}

/** The text of a result whose files were saved. */
function textBeside(envelope: ResponseEnvelope): string {
  return blocksOf(envelope)
    .flatMap((block) => textOf(block) ?? [])
    .join("\n");
}

/** The text of a block, or a word about what is none. */
function wordsOfBlock(block: Record<string, unknown>): string {
  const found = bytesOfBlock(block);
  if (found !== undefined) return note(found.bytes.length, found.mediaType);
  const { type, text, resource, uri, name } = block;
  if (type === "resource_link") {
    const title = typeof name === "string" && name !== "" ? ` ${name}` : "";
    return `(a link to${title} ${String(uri)}; --output <file> saves it)`;
  }
  const words = isPlainObject(resource) ? resource["text"] : text;
  return typeof words === "string" ? words : toSafeJson(block);
}

/** Deeper values are left as they are. */
const MOST_LEVELS = 12;

/** A copy in which bytes are replaced by a word about them, for terminals. */
function withoutBytes(value: unknown, level = 0): unknown {
  if (value instanceof Uint8Array) return note(value.length, ANY_BYTES);
  if (level > MOST_LEVELS || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => withoutBytes(item, level + 1));
  if (!isPlainObject(value)) return value;
  const found =
    typeof value["data"] === "string" || typeof value["blob"] === "string" ? bytesOfBlock(value) : undefined;
  const entries = Object.entries(value).map(([key, member]): [string, unknown] => {
    const isBytes = found !== undefined && (key === "data" || key === "blob");
    return [key, isBytes ? note(found.bytes.length, found.mediaType) : withoutBytes(member, level + 1)];
  });
  return Object.fromEntries(entries);
}

function note(size: number, mediaType: string): string {
  return `(${size} bytes of ${mediaType}; --output <file> saves them)`;
}
