import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { didYouMean, nearestNames } from "../../core/text/nearest-name.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { loginLine, troubleLines } from "../list/source-troubles.ts";
import { recallNames } from "../name-cache.ts";
import { createPastedCommand, type PastedCommand } from "../pasted-command.ts";
import type { Session, SourceFlags } from "./session.ts";

/** A command as it was given: where it runs, and its flags. */
export interface GivenCommand {
  readonly io: Io;
  readonly flags: SourceFlags;
}

/**
 * Finds an operation by its id; where there is one source alone its namespace may be left out. One that is not there is a
 * `CommandError` with the nearest names, or with the reason why its source is down.
 */
export async function findOperation(
  session: Session,
  id: string,
  { io, flags }: GivenCommand,
): Promise<AnyOperation> {
  const { executor, sources } = session.gateway;
  const whole = isShown(executor.get(id));
  if (whole !== undefined) return whole;
  const [only] = sources;
  if (session.kind === "target" && only !== undefined) {
    const short = isShown(executor.get(`${only.name}.${id}`));
    if (short !== undefined) return short;
  }
  const namespace = id.slice(0, Math.max(0, id.indexOf(".")));
  const down = sources.find(({ name, state }) => name === namespace && state.status !== "up");
  if (down !== undefined)
    throw new CommandError(whyNot(down, createPastedCommand(io, flags)), EXIT.callError);
  const known = new Set<string>([...executor.operations].filter(isShown).map((operation) => operation.id));
  for (const operation of (await recallNames(io, flags)).operations) known.add(operation.id);
  const shown = safeLine(id, 120);
  // It was there when names were last kept, for somebody.
  const paste = createPastedCommand(io, flags);
  const missing = known.delete(id)
    ? describeHidden(shown, flags)
    : describeMissing(shown, nearestNames(id, known), safeLine(paste("list"), 1_000));
  throw new CommandError([missing, ...troublesOf(session, namespace, paste)].join("\n  "), EXIT.callError);
}

/** What may be the reason: tools of its source that nobody approved, and modules and the bus, which hold any namespace. */
function troublesOf({ gateway, kind }: Session, namespace: string, paste: PastedCommand): readonly string[] {
  const reports = gateway.reports();
  const isOpen = (report: (typeof reports)[number]): boolean =>
    kind === "target" || report.name === namespace || report.kind === "local" || report.kind === "bus";
  return troubleLines(reports.filter(isOpen), paste).map((line) => safeLine(line, 1_000));
}

function describeHidden(id: string, { url }: SourceFlags): string {
  const head = `There is no operation "${id}" any more`;
  return url === undefined ? `${head}.` : `${head}, or this token may not see it.`;
}

function isShown(operation: AnyOperation | undefined): AnyOperation | undefined {
  return operation?.visibility === "internal" ? undefined : operation;
}

function whyNot({ name, state }: Session["gateway"]["sources"][number], paste: PastedCommand): string {
  const source = `The source "${name}"`;
  if (state.status === "disabled") return `${source} is disabled in the config.`;
  if (state.status !== "down") return `${source} is not there yet; try again soon.`;
  return state.wants === "login" ? loginLine(name, paste) : `${source} is down: ${safeLine(state.reason)}`;
}

/** The sentence for an operation that is not there; `list` is the command that shows what is. */
export function describeMissing(id: string, near: readonly string[], list = "waybill list"): string {
  return `There is no operation "${id}"${didYouMean(near, `; "${list}" shows what there is.`)}`;
}
