import { parseJsonTextOrNone } from "../../core/json/json-text.ts";
import type { ResultError, ToolResult } from "../../core/result/tool-result.ts";
import { encodeResult, FORMATS } from "../../formats/index.ts";
import { parseGivenJson } from "../call/parse-json.ts";
import { checkChoice, parseWholeNumber } from "../flags.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { parseFormat } from "./format-flag.ts";
import { orCommandError } from "./or-command-error.ts";
import { readGiven } from "./read-given.ts";
import { lossText } from "./run-transcode.ts";
import { writeJson } from "./write-json.ts";

/** The flags of `waybill encode`. */
export interface EncodeFlags {
  readonly to: string;
  readonly text?: readonly string[];
  readonly tool?: string;
  readonly toolVersion?: string;
  readonly requestId?: string;
  readonly timestamp?: string;
  readonly durationMs?: string;
  readonly tier?: string;
  readonly status?: string;
  readonly summary?: string;
  readonly detail?: readonly string[];
  readonly nextStep?: readonly string[];
  readonly error?: string;
  readonly message?: string;
  readonly category?: string;
  readonly suggestion?: string;
  readonly residual?: boolean;
}

/** Writes data as a tool result. */
export async function runEncode(io: Io, given: string | undefined, flags: EncodeFlags): Promise<number> {
  const to = parseFormat(flags.to, "--to");
  const { residual = true } = flags;
  const described = resultOf(flags);
  const data = await readData(io, given, described.error !== undefined);
  const result: ToolResult = { ...described, ...(data !== undefined && { data: data.value }) };
  orCommandError("The result", () => {
    const written = encodeResult(result, to, { residual });
    const lost = FORMATS[to].losses(result);
    writeJson(io, written);
    if (lost.length > 0 && !io.quiet && !residual)
      io.stderr.write(`waybill: ${lossText(lost, to, residual)}\n`);
  });
  return EXIT.ok;
}

/** An argument that is JSON is the data, any other names a file; an error needs none, and waits for none. */
async function readData(
  io: Io,
  given: string | undefined,
  isError: boolean,
): Promise<{ readonly value: unknown } | undefined> {
  if (given === undefined && isError) return undefined;
  const value = given === undefined ? undefined : parseJsonTextOrNone(given);
  if (value !== undefined) return { value };
  if (given !== undefined && /^\s*[[{"]/.test(given)) return { value: parseGivenJson(given, "The data") };
  const file = given?.startsWith("@") ? given.slice(1) : given;
  const { text, what } = await readGiven(io, file, "encode");
  return { value: parseGivenJson(text, what) };
}

function resultOf(flags: EncodeFlags): ToolResult {
  const error = errorOf(flags);
  const { text, tool, toolVersion, requestId, timestamp, summary, detail, nextStep } = flags;
  const status = flags.status && checkChoice(flags.status, "--status", ["ok", "error", "info", "warn"]);
  const tier = flags.tier && checkChoice(flags.tier, "--tier", ["community", "pro", "enterprise"]);
  const duration = flags.durationMs && parseWholeNumber(flags.durationMs, "--duration-ms", 0, 1e12);
  if (timestamp !== undefined && Number.isNaN(Date.parse(timestamp))) {
    throw new CommandError("--timestamp takes a time such as 2025-06-17T18:30:00Z.");
  }
  return {
    isError: error !== undefined || status === "error",
    ...(error && { error }),
    ...(text && { content: text.map((words) => ({ type: "text" as const, text: words })) }),
    ...(status && { status }),
    ...(summary !== undefined && { summary }),
    ...(detail && { details: detail }),
    ...(nextStep && { nextSteps: nextStep }),
    ...(tool !== undefined && { tool }),
    ...(toolVersion !== undefined && { toolVersion }),
    ...(requestId !== undefined && { requestId }),
    ...(timestamp !== undefined && { timestamp }),
    ...(duration !== undefined && duration !== "" && { durationMs: duration }),
    ...(tier && { tier }),
  };
}

function errorOf({ error, message, category, suggestion }: EncodeFlags): ResultError | undefined {
  if (error === undefined) {
    const stray =
      message === undefined
        ? category === undefined
          ? suggestion && "--suggestion"
          : "--category"
        : "--message";
    if (stray) throw new CommandError(`${stray} goes with --error <code>, which says that the tool failed.`);
    return undefined;
  }
  return {
    message: message ?? `The tool failed with ${error}.`,
    code: error,
    ...(category !== undefined && { category }),
    ...(suggestion !== undefined && { suggestedAction: suggestion }),
  };
}
