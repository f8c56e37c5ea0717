import type { FormatName, ToolResult } from "../../core/result/tool-result.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { decodeToolResult, FORMATS, transcode } from "../../formats/index.ts";
import { findResults } from "../../formats/report/find-results.ts";
import type { FailureKind } from "../../formats/report/found-result.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { parseFormat } from "./format-flag.ts";
import { orCommandError } from "./or-command-error.ts";
import { readGiven } from "./read-given.ts";
import { writeJson } from "./write-json.ts";

/** The flags of `waybill transcode`. */
export interface TranscodeFlags {
  readonly to: string;
  readonly from?: string;
  readonly residual?: boolean;
  readonly lenient?: boolean;
}

const FAILURES: Readonly<Record<FailureKind, string>> = {
  "json-rpc-error": "a JSON-RPC error",
  problem: "a problem of an HTTP API",
  "call-error": "the fixture of a call that failed",
};

/** Writes the results in a file or on stdin in another format. */
export async function runTranscode(io: Io, file: string | undefined, flags: TranscodeFlags): Promise<number> {
  const to = parseFormat(flags.to, "--to");
  const from = flags.from === undefined ? undefined : parseFormat(flags.from, "--from");
  const { text, what } = await readGiven(io, file, "transcode --to mcp");
  const { lenient, residual = true } = flags;
  const lost = new Set<string>();
  for (const found of orCommandError(what, () => findResults(text, what))) {
    const place = found.line === undefined ? what : `Line ${found.line}`;
    if ("failure" in found) {
      throw new CommandError(
        `${place} is ${FAILURES[found.failure]}, and no result; there is nothing to write.`,
      );
    }
    orCommandError(place, () => {
      const written = transcode(found.value, to, { from, residual, lenient });
      for (const pointer of lossesOf(found.value, to, { from, lenient })) lost.add(pointer);
      writeJson(io, written);
    });
  }
  if (lost.size > 0 && !io.quiet) io.stderr.write(`waybill: ${lossText(lost, to, residual)}\n`);
  return EXIT.ok;
}

function lossesOf(
  value: unknown,
  to: FormatName,
  { from, lenient }: { readonly from: FormatName | undefined; readonly lenient: boolean | undefined },
): readonly string[] {
  const result: ToolResult | undefined =
    from === undefined
      ? decodeToolResult(value, { lenient }).result
      : FORMATS[from].decode(value, { lenient }).result;
  return result === undefined ? [] : FORMATS[to].losses(result);
}

/** Says what a format has no place for, and what became of it. */
export function lossText(lost: Iterable<string>, to: FormatName, residual: boolean): string {
  const pointers = [...lost].sort().map((pointer) => safeLine(pointer, 100));
  const shown =
    pointers.slice(0, 20).join(", ") + (pointers.length > 20 ? ` and ${pointers.length - 20} more` : "");
  const fate = residual ? 'travels in _meta["dev.waybill/result"] and comes back' : "is gone or made up";
  return `${to} has no place for everything; what differs ${fate}: ${shown}.`;
}
