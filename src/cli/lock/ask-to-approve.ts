import { CommandError, EXIT, type Io } from "../io.ts";
import type { ServerLockState } from "./lock-state.ts";
import { toLockText } from "./write-lock-state.ts";

/** Shows what has changed and asks, on a terminal; where nobody can be asked, `--yes` has to say it. */
export async function askToApprove(
  io: Io,
  states: readonly ServerLockState[],
  changed: number,
): Promise<void> {
  const what =
    changed === 1
      ? "1 tool has changed since it was approved."
      : `${changed} tools have changed since they were approved.`;
  if (io.stdin.isTTY !== true || io.stderr.isTTY !== true) {
    throw new CommandError(`${what} Nothing was approved: look at the changes, then add --yes.`);
  }
  const asked = states
    .map((state) => ({ ...state, tools: state.tools.filter((tool) => tool.state === "changed") }))
    .filter(({ tools }) => tools.length > 0);
  // Nothing of what is agreed to is cut.
  io.stderr.write(toLockText(asked, { stream: io.stderr, env: io.env, all: true }));
  const { confirm, isCancel } = await import("@clack/prompts");
  const answer = await confirm({
    message: `${what} Approve?`,
    initialValue: false,
    input: io.stdin,
    output: io.stderr,
  });
  if (isCancel(answer)) throw new CommandError("Nothing was approved.", EXIT.interrupted);
  if (!answer) throw new CommandError("Nothing was approved.", EXIT.toolError);
}
