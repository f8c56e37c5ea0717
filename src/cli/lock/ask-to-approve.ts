import { CommandError, EXIT, type Io } from "../io.ts";
import { spelledCommand } from "../spelled-command.ts";
import { counted } from "../terminal/counted.ts";
import type { ServerLockState, ToolState } from "./lock-state.ts";
import { toLockText } from "./write-lock-state.ts";

/** Tools of a server that would be approved. */
export interface AskedServer {
  readonly state: ServerLockState;
  readonly tools: readonly ToolState[];
}

/**
 * Shows what would be approved and asks, on a terminal. Where nobody can be asked, `--yes` has to say it, unless nothing was ever approved of
 * the server: whoever locks it for the first time has nothing to compare with.
 */
export async function askToApprove(io: Io, asked: readonly AskedServer[]): Promise<void> {
  if (io.stdin.isTTY !== true || io.stderr.isTTY !== true) {
    assertFirst(io, asked);
    return;
  }
  const all = asked.flatMap(({ tools }) => tools);
  if (all.length === 0) return;
  const shown = asked
    .map(({ state, tools }) => ({
      ...state,
      tools: state.tools.filter((tool) => tools.includes(tool) || tool.state === "gone"),
    }))
    .filter(({ tools }) => tools.length > 0);
  // Nothing of what is agreed to is cut.
  io.stderr.write(toLockText(shown, { stream: io.stderr, env: io.env, all: true }));
  const { confirm, isCancel } = await import("@clack/prompts");
  const answer = await confirm({
    message: `${summaryOf(all)} Approve?`,
    initialValue: false,
    input: io.stdin,
    output: io.stderr,
  });
  if (isCancel(answer)) throw new CommandError("Nothing was approved.", EXIT.interrupted);
  if (!answer) throw new CommandError("Nothing was approved.", EXIT.toolError);
}

function assertFirst(io: Io, asked: readonly AskedServer[]): void {
  const unseen = asked.filter(({ state }) => !isFirst(state)).flatMap(({ tools }) => tools);
  if (unseen.length === 0) return;
  const look = `look with "${spelledCommand(io)} lock"`;
  throw new CommandError(`${summaryOf(unseen)} Nothing was approved: ${look}, then add --yes.`);
}

/** Whether nothing of a server was approved so far. */
function isFirst({ tools }: ServerLockState): boolean {
  return tools.every(({ state }) => state === "new");
}

function summaryOf(tools: readonly ToolState[]): string {
  const changed = tools.filter(({ state }) => state === "changed").length;
  const fresh = tools.length - changed;
  const sentences = [
    ...(changed === 1 ? ["1 tool has changed since it was approved."] : []),
    ...(changed > 1 ? [`${changed} tools have changed since they were approved.`] : []),
    ...(fresh > 0 ? [`${counted(fresh, "tool")} ${fresh === 1 ? "is" : "are"} new.`] : []),
  ];
  return sentences.join(" ");
}
