import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import type { CallError } from "../../core/errors/errors.ts";
import { randomId } from "../../core/execution/request-id.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import type { FormatName } from "../../core/result/tool-result.ts";
import { safeLine, safeText } from "../../core/text/safe-text.ts";
import { CommandError, type Io } from "../io.ts";
import { paintJson, toSafeJson } from "../terminal/json-output.ts";
import { createStyle } from "../terminal/style.ts";
import { writeOut } from "../terminal/write-out.ts";
import { bytesOfResult, withoutBytes } from "./bytes-of-result.ts";

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

/** Creates the writer that the flags ask for: to stdout, or to a file. */
export function createResultWriter(io: Io, operation: AnyOperation, flags: WriteFlags): ResultWriter {
  const writing: Writing = { io, operation, flags };
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
        return save(io, flags.output, await contentOf(envelope, operation, flags));
      }
      await put(`${await shown(writing, envelope, isPretty(io, flags))}\n`);
    },
    async line(envelope) {
      await put(`${await shown(writing, envelope, false)}\n`);
    },
    async failure(error) {
      if (flags.format === undefined || flags.format === "response-envelope") return false;
      const written = await formatted(endedCall(operation, { error }), flags.format);
      await put(`${print(io, written, isPretty(io, flags))}\n`);
      return true;
    },
    async end() {
      if (flags.output !== undefined && lines.length > 0 && !isWritten)
        await save(io, flags.output, lines.join(""));
    },
  };
}

function isPretty(io: Io, flags: WriteFlags): boolean {
  return io.stdout.isTTY === true && !flags.json;
}

interface Writing {
  readonly io: Io;
  readonly operation: AnyOperation;
  readonly flags: WriteFlags;
}

async function shown(
  { io, operation, flags }: Writing,
  envelope: ResponseEnvelope,
  pretty: boolean,
): Promise<string> {
  const { data } = envelope;
  if (flags.raw && typeof data === "string") return safeText(data);
  const value = await resultValue(envelope, operation, flags);
  const isTerminal = io.stdout.isTTY === true && flags.output === undefined;
  return print(io, isTerminal ? withoutBytes(value) : value, pretty, isTerminal && !flags.json);
}

function print(io: Io, value: unknown, pretty: boolean, painted = pretty): string {
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

/** What goes into a file: bytes as they are, text as it is, anything else as JSON. */
async function contentOf(
  envelope: ResponseEnvelope,
  operation: AnyOperation,
  flags: WriteFlags,
): Promise<string | Uint8Array> {
  if (flags.envelope || flags.format !== undefined)
    return `${toSafeJson(await resultValue(envelope, operation, flags), 2)}\n`;
  const found = bytesOfResult(envelope);
  if (found !== undefined) return found.bytes;
  const { data } = envelope;
  return typeof data === "string" ? data : `${toSafeJson(data, 2)}\n`;
}

async function save(io: Io, file: string, content: string | Uint8Array): Promise<void> {
  const path = resolve(io.cwd, file);
  try {
    await writeFile(path, content);
  } catch (cause) {
    const { code = "unknown" } = cause as NodeJS.ErrnoException;
    throw new CommandError(`The file "${safeLine(file, 200)}" cannot be written (${code}).`, undefined, {
      cause,
    });
  }
  const size = typeof content === "string" ? Buffer.byteLength(content) : content.length;
  if (!io.quiet) io.stderr.write(`waybill: wrote ${size} bytes to ${safeLine(file, 200)}\n`);
}
