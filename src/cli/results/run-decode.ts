import { describeResult, type ResultReport } from "../../formats/report/describe-result.ts";
import { findResults } from "../../formats/report/find-results.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { toSafeJson } from "../terminal/json-output.ts";
import { createStyle } from "../terminal/style.ts";
import { orCommandError } from "./or-command-error.ts";
import { readGiven } from "./read-given.ts";
import { writeJson } from "./write-json.ts";
import { isFailure, writeResultReport } from "./write-result-report.ts";

/** The flags of `waybill decode`. */
export interface DecodeFlags {
  readonly data?: boolean;
  readonly json?: boolean;
  readonly losses?: boolean;
  readonly strict?: boolean;
  readonly lenient?: boolean;
  readonly recoverJson?: boolean;
}

/** Says what the results in a file or on stdin are. */
export async function runDecode(io: Io, file: string | undefined, flags: DecodeFlags): Promise<number> {
  if (flags.data && flags.json) throw new CommandError("--data and --json exclude each other; choose one.");
  const { text, what } = await readGiven(io, file, "decode");
  const { lenient, recoverJson, losses = flags.json } = flags;
  const found = orCommandError(what, () => findResults(text, what));
  const reports = found.map((one, at) => {
    const place =
      one.line === undefined ? (found.length > 1 ? `Result ${at + 1}` : what) : `Line ${one.line}`;
    return orCommandError(place, () => describeResult(one, place, { lenient, recoverJson, losses }));
  });
  for (const [at, report] of reports.entries()) write(io, report, flags, at);
  const isOdd = reports.some(
    (report) => report.odd.length > 0 || report.format === "ambiguous" || isFailure(report),
  );
  return flags.strict && isOdd ? EXIT.toolError : EXIT.ok;
}

function write(io: Io, report: ResultReport, flags: DecodeFlags, at: number): void {
  if (flags.data) writeData(io, report);
  else if (flags.json) io.stdout.write(`${toSafeJson(report)}\n`);
  else {
    const style = createStyle(io.stdout, io.env);
    const head = report.line === undefined ? "" : `${style.dim(`— line ${report.line}`)}\n`;
    io.stdout.write(`${at === 0 ? "" : "\n"}${head}${writeResultReport(report, style)}`);
  }
}

function writeData(io: Io, { data, format, line }: ResultReport): void {
  if (data !== undefined) {
    writeJson(io, data);
    return;
  }
  const where = line === undefined ? "" : ` in line ${line}`;
  const why =
    format === "ambiguous"
      ? "more than one format fits, and each reads other data; look at it without --data"
      : "it is an error that carries none";
  throw new CommandError(`The result${where} has no data: ${why}.`, EXIT.toolError);
}
