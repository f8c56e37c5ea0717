import type { Command } from "commander";
import { addExamples } from "../examples.ts";
import { addServingFlags, addSourceFlags, parseWholeNumber } from "../flags.ts";
import type { InspectFlags } from "../inspect/run-inspect.ts";
import type { Io } from "../io.ts";
import { action } from "../run-command.ts";

/** Adds `waybill inspect`. */
export function addInspectCommand(program: Command, io: Io): void {
  const command = program
    .command("inspect")
    .summary("look at a config, a server or a document in the browser")
    .description(
      "Look at a config, an MCP server or an OpenAPI document in the browser: what it offers, what a call gives, every call that passes.",
    )
    .argument("[target]", "an address, a command line in quotes, a document, or a source of the config")
    .option("-p, --port <port>", "where to listen (default: 4101, or the next one that is free)", (text) =>
      parseWholeNumber(text, "--port", 0, 65_535),
    )
    .option("--host <host>", "the address to listen at (default: 127.0.0.1)")
    .option("--open", "open the page in the browser");
  addServingFlags(command);
  addSourceFlags(command);
  addExamples(
    command,
    io,
    [
      ["waybill inspect", "the config of this folder, or a small world to play with"],
      ["waybill inspect --open", "the same, in the browser at once"],
      ["waybill inspect 'npx -y some-mcp-server'", "the tools of any MCP server"],
      ["waybill inspect ./openapi.yaml", "the operations of an HTTP API"],
      ["waybill inspect https://mcp.example/mcp --token-env MCP_TOKEN", ""],
    ],
    `The address of the page is the only line on stdout. It holds a token that is new each time and lets whoever has it do all that you
may do here; /mcp and /api ask for it too. --open puts it on the command line of the browser, which other users of this machine may see.`,
  );
  command.action(
    action(io, async (target: string | undefined, flags: InspectFlags) => {
      const { runInspect } = await import("../inspect/run-inspect.ts");
      return runInspect(io, target, flags);
    }),
  );
}
