import { type Command, Option } from "commander";
import { addExamples } from "../examples.ts";
import { addJsonFlag, collect, parseWholeNumber } from "../flags.ts";
import type { InitFlags } from "../init/init-answers.ts";
import type { Io } from "../io.ts";
import { action } from "../run-command.ts";

const EXAMPLES = [
  ["waybill init", "ask what to mount, and write waybill.config.json"],
  ["waybill init --yes", "take what this project has, or begin with a sample"],
  ["waybill init --from ~/.cursor/mcp.json", "take over the MCP servers of another host"],
  ["waybill init --openapi shop=./shop.yaml --format ts", "mount an HTTP API; write TypeScript"],
  ['waybill init --mcp "files=npx -y @modelcontextprotocol/server-filesystem ."', "mount an MCP server"],
  ["waybill init --yes --dry-run", "show what would be written"],
] as const;

const MORE =
  "Files of other hosts are read, never changed. Secrets in them go to .env.waybill, and are not shown.";

/** Adds `waybill init`. */
export function addInitCommand(program: Command, io: Io): void {
  const command = program
    .command("init")
    .summary("write a config, by asking or from what other hosts have")
    .description("Writes a config into this folder: by asking, or from what other hosts and flags say.")
    .option("-y, --yes", "ask nothing: take what this project has, or begin with a sample")
    .option("--from <file>", "take over the MCP servers of another host's file; may be repeated", collect)
    .option(
      "--openapi <name=document>",
      "mount an HTTP API by its OpenAPI document; may be repeated",
      collect,
    )
    .option("--mcp <name=server>", "mount an MCP server: a command line or a URL; may be repeated", collect)
    .option("--sample", "write a module with a sample operation")
    .addOption(new Option("--format <format>", "how the config is written").choices(["json", "yaml", "ts"]))
    .option("--port <port>", "the port to serve on", (text) => parseWholeNumber(text, "--port", 0, 65_535))
    .option("--force", "replace a config that is there; the old one is kept beside it")
    .option("--dry-run", "print what would be written, and write nothing");
  addJsonFlag(command, "what was written, as JSON");
  addExamples(command, io, EXAMPLES, MORE);
  command.action(
    action(io, async (flags: InitFlags) => {
      const { runInit } = await import("../init/run-init.ts");
      await runInit(io, flags);
    }),
  );
}
