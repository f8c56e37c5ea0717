import { safeText } from "../../core/text/safe-text.ts";
import { CommandError, type Io } from "../io.ts";
import { spelledCommand } from "../spelled-command.ts";
import { toSafeJson } from "../terminal/json-output.ts";
import { findHosts, readHost } from "./found-hosts.ts";
import type { InitAnswers, InitFlags } from "./init-answers.ts";
import { findConfigs, type InitPlan, type PlannedFile, planInit } from "./init-plan.ts";
import { documentMistake, parseNamedTarget, serverMistake } from "./named-target.ts";
import { writePlan } from "./write-plan.ts";

/** Writes a config: from flags, from what this project has, or by asking. */
export async function runInit(io: Io, flags: InitFlags): Promise<void> {
  const answers = await findAnswers(io, flags);
  const hosts = await Promise.all(answers.hostFiles.map((path) => readHost(io, path)));
  const plan = await planInit(io.cwd, answers, hosts);
  if (flags.dryRun !== true) await writePlan(io.cwd, plan);
  for (const note of plan.notes) if (io.quiet !== true) io.stderr.write(`${safeText(note)}\n`);
  io.stdout.write(
    flags.json === true ? `${toSafeJson(toReport(io, plan, flags), 2)}\n` : tell(io, plan, flags),
  );
}

async function findAnswers(io: Io, flags: InitFlags): Promise<InitAnswers> {
  const given = fromFlags(io, flags);
  const isTold = given.hostFiles.length + given.openapi.length + given.mcp.length > 0 || given.sample;
  if (isTold) return given;
  if (flags.yes === true) return await takeDefaults(io, given);
  if (!io.stdin.isTTY || !io.stderr.isTTY) {
    throw new CommandError(
      '"init" asks its questions on a terminal; without one, give --yes, --from <file>, --openapi <name=document>, --mcp <name=server> or --sample.',
    );
  }
  const [hosts, configs, { askAnswers }] = await Promise.all([
    findHosts(io),
    findConfigs(io.cwd),
    import("./ask-answers.ts"),
  ]);
  return await askAnswers(io, { flags, hosts, configs });
}

function fromFlags(io: Io, flags: InitFlags): InitAnswers {
  const openapi = (flags.openapi ?? []).map((text) => parseNamedTarget("--openapi", text));
  const mcp = (flags.mcp ?? []).map((text) => parseNamedTarget("--mcp", text));
  for (const { name, target } of openapi) refuse(`--openapi ${name}`, documentMistake(target, io.cwd));
  for (const { name, target } of mcp) refuse(`--mcp ${name}`, serverMistake(target));
  const { format = "json", port, sample = false, force = false } = flags;
  for (const [flag, named] of [["--openapi", openapi] as const, ["--mcp", mcp] as const]) {
    const twice = named.find(({ name }, at) => named.findIndex((other) => other.name === name) !== at);
    if (twice !== undefined) throw new CommandError(`${flag} has the name "${twice.name}" twice.`);
  }
  return { hostFiles: flags.from ?? [], openapi, mcp, sample, format, port, replace: force };
}

function refuse(flag: string, mistake: string | undefined): void {
  if (mistake !== undefined) throw new CommandError(`${flag}: ${mistake}`);
}

/** What belongs to the person alone is taken over only when they say so. */
async function takeDefaults(io: Io, given: InitAnswers): Promise<InitAnswers> {
  const project = (await findHosts(io)).filter(({ isProject }) => isProject).map(({ path }) => path);
  return { ...given, hostFiles: project, sample: project.length === 0 };
}

/** The commands that make sense next, the likeliest first. */
function nextCommands(io: Io, { sources }: InitPlan): string[] {
  const command = spelledCommand(io);
  return [`${command} ${sources.sample ? "call hello.greet name=Ada" : "list"}`, `${command} serve`];
}

function toReport(io: Io, plan: InitPlan, { dryRun = false }: InitFlags): object {
  return {
    dryRun,
    files: plan.files.map(({ path, change, secrets, text }) => ({
      path,
      change,
      ...(secrets === undefined ? dryRun && { text } : { secrets }),
    })),
    moved: plan.moved,
    notes: plan.notes,
    next: nextCommands(io, plan),
  };
}

function tell(io: Io, plan: InitPlan, { dryRun = false }: InitFlags): string {
  if (dryRun) return plan.files.map(show).join("\n");
  const lines = [
    ...plan.moved.map(({ from, to }) => `Kept    ${from} as ${to}`),
    ...plan.files.map((file) => `Wrote   ${file.path}${describeFile(file)}`),
    "",
    `Next: ${nextCommands(io, plan).join(", or ")}`,
  ];
  return `${safeText(lines.join("\n"))}\n`;
}

function describeFile({ secrets, path }: PlannedFile): string {
  if (secrets !== undefined) return ` (secrets, readable by you alone: ${secrets.join(", ")})`;
  return path === ".gitignore" ? " (keeps the secrets out of the repository)" : "";
}

/** A file as it would be; of one with secrets only their names. */
function show({ path, text, secrets }: PlannedFile): string {
  const shown = secrets === undefined ? text : secrets.map((name) => `${name}=***\n`).join("");
  return safeText(`# ${path}\n${shown}`);
}
