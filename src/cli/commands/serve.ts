import type { Command } from "commander";
import { addExamples } from "../examples.ts";
import { addServingFlags, addSourceFlags, parseDuration, parseWholeNumber } from "../flags.ts";
import type { Io } from "../io.ts";
import { action } from "../run-command.ts";
import type { ServeFlags } from "../serve/run-serve.ts";

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
    .option("--inspect", "serve the inspector at /inspect (default: serve.inspect of the config)")
    .option("--no-inspect", "do not serve the inspector, whatever the config says")
    .option(
      "--lame-duck <time>",
      "how long to go on after SIGTERM while /ready says 503 (default: that of the config, else 5s)",
      (text) => parseDuration(text, "--lame-duck", 0),
    );
  addServingFlags(command);
  addSourceFlags(command);
  addExamples(
    command,
    io,
    [
      ["waybill serve", "MCP at /mcp, HTTP at /api, /openapi.json and /docs, Prometheus at /metrics"],
      ["waybill serve --inspect", "the inspector at /inspect: see every operation, source and call"],
      ["waybill serve --port 8080 --log-level warn", ""],
      ["waybill serve --stdio", "as an MCP server of a desktop host or an editor"],
      ["waybill serve --mcp 'npx -y some-mcp-server'", "any MCP server over HTTP"],
    ],
    "SIGTERM or Ctrl-C lets calls under way end (serve.drainMs of the config) and exits with 0; a second one exits at once. After SIGTERM, /ready says 503 for a while first (--lame-duck).",
  );
  command.action(
    action(io, async (flags: ServeFlags) => {
      const { runServe } = await import("../serve/run-serve.ts");
      return runServe(io, flags);
    }),
  );
}
