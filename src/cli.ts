#!/usr/bin/env node
import { parseArgs } from "node:util";
import { PACKAGE_VERSION } from "./core/package-version.ts";
import { runTour } from "./tour/run-tour.ts";

const HELP = `Usage: waybill [tour] [options]

  tour         call a handful of local operations and show what comes back (the default)

Options
  --json       JSON lines: one for each stop of the tour
  --version    print the version
  -h, --help   print this

Colours appear on a terminal, unless NO_COLOR is set.
`;

const FLAGS = ["json", "version", "help"] as const;

/** What the command line asks for, or the one line that says what is wrong with it. */
type Request = { readonly flags: ReadonlySet<string> } | { readonly mistake: string };

function parseRequest(args: string[]): Request {
  const options = Object.fromEntries(
    FLAGS.map((name) => [name, { type: "boolean" as const, ...(name === "help" && { short: "h" }) }]),
  );
  const { tokens } = parseArgs({ args, options, allowPositionals: true, strict: false, tokens: true });
  const flags = new Set<string>();
  const commands: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") commands.push(token.value);
    if (token.kind !== "option") continue;
    if (!Object.hasOwn(options, token.name)) return { mistake: `there is no option ${token.rawName}` };
    if (token.value !== undefined) return { mistake: `${token.rawName} takes no value` };
    flags.add(token.name);
  }
  const [command = "tour", extra] = commands;
  if (command !== "tour") return { mistake: `there is no command "${command}"` };
  if (extra !== undefined) return { mistake: `"tour" takes no argument, but got "${extra}"` };
  return { flags };
}

async function main(args: string[]): Promise<number> {
  const request = parseRequest(args);
  if ("mistake" in request) {
    process.stderr.write(`waybill: ${request.mistake}; "waybill --help" lists what there is.\n`);
    return 2;
  }
  const write = (text: string): void => void process.stdout.write(text);
  if (request.flags.has("help")) write(HELP);
  else if (request.flags.has("version")) write(`${PACKAGE_VERSION}\n`);
  else await runTour({ write, json: request.flags.has("json"), colors: wantsColors() });
  return 0;
}

function wantsColors(): boolean {
  const { NO_COLOR, TERM } = process.env;
  return process.stdout.isTTY === true && NO_COLOR === undefined && TERM !== "dumb";
}

// A reader that leaves early (`waybill | head -1`) is a normal end.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  process.stderr.write(`waybill: cannot write the output (${error.code}).\n`);
  process.exit(1);
});
process.exitCode = await main(process.argv.slice(2));
