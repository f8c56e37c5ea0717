import type { Command } from "commander";
import { addExamples } from "../examples.ts";
import { addJsonFlag, collect } from "../flags.ts";
import type { Io } from "../io.ts";
import type { LockFlags } from "../lock/run-lock.ts";
import { action } from "../run-command.ts";

const NOTES = `
What is approved is kept in waybill.lock.json beside the config, or where "lock" of the config says. With "lock": true the
gateway refuses calls of tools that are not as approved.
Where nobody can be asked, --approve needs --yes, unless nothing of a server was approved before.

Exit codes: 0 all as approved, 1 some tools are not, 2 usage, 3 a server cannot be reached.`;

/** Adds `waybill lock`. */
export function addLockCommand(program: Command, io: Io): void {
  const command = program
    .command("lock")
    .summary("pin the definitions of tools, and approve changes")
    .description("Shows how the tools of MCP servers compare with what was approved, or approves them.")
    .argument("[servers...]", "servers of the config (default: all)")
    .option("-c, --config <file>", "a config file (default: the nearest waybill.config.*)")
    .option("--mcp <server>", "one MCP server instead: an address, or a command line in quotes")
    .option("--token-env <name>", "the environment variable that holds the token for --mcp")
    .option("--approve [servers...]", "approves what is listed now, of servers, or a tool as server.tool")
    .option("--tool <name>", "approves this tool alone; may be repeated", collect)
    .option("-y, --yes", "approves without asking")
    .option("--all", "shows everything: every new tool, and long texts whole");
  addJsonFlag(command, "the state as JSON");
  addExamples(command, io, [
    ["waybill lock", "what is approved, new or changed, with a diff"],
    ["waybill lock --approve", "shows what is new and changed, asks, and approves it"],
    ["waybill lock --approve github.create_issue", "one tool of one server"],
    ["waybill lock --json || exit 1", "in CI"],
  ]);
  command.addHelpText("after", NOTES);
  command.action(
    action(io, async (servers: readonly string[], flags: LockFlags) => {
      const { runLock } = await import("../lock/run-lock.ts");
      return runLock(io, servers, flags);
    }),
  );
}
