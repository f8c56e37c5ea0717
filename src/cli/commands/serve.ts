import type { Command } from "commander";
import { addExamples } from "../examples.ts";
import { addSourceFlags, checkChoice, parseWholeNumber } from "../flags.ts";
import type { Io } from "../io.ts";
import { action } from "../run-command.ts";
import type { ServeFlags } from "../serve/run-serve.ts";

const LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
const FORMATS = ["json", "text"] as const;

/** Adds `waybill serve`. */
export function addServeCommand(program: Command, io: Io): void {
  const command = program
    .command("serve")
    .summary("put every source behind one MCP endpoint and one HTTP API")
    .description(
      "Put every source of the config behind one MCP endpoint and one HTTP API. Without a config, a small world to play with is served.",
    )
    .option("-p, --port <port>", "where to listen (default: that of the config, else 4100)", (text) =>
      parseWholeNumber(text, "--port", 0, 65_535),
    )
    .option("--host <host>", "the address to listen at (default: that of the config, else 127.0.0.1)")
    .option("--stdio", "serve MCP over stdin and stdout instead, for hosts that start their servers")
    .option("--no-watch", "do not follow changes of the config, modules and documents")
    .option("--log-level <level>", LEVELS.join(", "), (text) => checkChoice(text, "--log-level", LEVELS))
    .option("--log-format <format>", `${FORMATS.join(", ")} (default: text on a terminal)`, (text) =>
      checkChoice(text, "--log-format", FORMATS),
    );
  addSourceFlags(command);
  addExamples(
    command,
    io,
    [
      ["waybill serve", "MCP at /mcp, HTTP at /api, /openapi.json and /docs, Prometheus at /metrics"],
      ["waybill serve --port 8080 --log-level warn", ""],
      ["waybill serve --stdio", "as an MCP server of a desktop host or an editor"],
      ["waybill serve --mcp 'npx -y some-mcp-server'", "any MCP server over HTTP"],
    ],
    "SIGTERM or Ctrl-C lets calls under way end (serve.drainMs of the config) and exits with 0; a second one exits at once.",
  );
  command.action(
    action(io, async (flags: ServeFlags) => {
      const { runServe } = await import("../serve/run-serve.ts");
      return runServe(io, flags);
    }),
  );
}
