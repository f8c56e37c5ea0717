import type { Command } from "commander";
import type { CheckFlags } from "../check/run-check.ts";
import { addJsonFlag, addTimeoutFlag, collect } from "../flags.ts";
import type { Io } from "../io.ts";
import { action } from "../run-command.ts";

const EXAMPLES = `
A target is an address (https://host/mcp, https://host/openapi.json, or a running gateway, which is checked as both),
a command line in quotes, a document, or the name of a source in the config.

Only tools that say that they only read, and GET operations without required parameters, are called; others where
--call names them. Inputs are made from the schemas; --input gives better ones.

Examples
  waybill check "npx -y @modelcontextprotocol/server-everything"
  waybill check https://mcp.example/mcp --token-env MCP_TOKEN
  waybill check ./openapi.yaml --offline
  waybill check ./openapi.yaml --base-url http://localhost:3000 --input getPet='{"id":1}'
  waybill check github --strict --junit report.xml

Exit codes: 0 nothing failed, 1 something did (with --strict warnings too), 2 usage, 3 it cannot be reached.`;

/** Adds `waybill check`. */
export function addCheckCommand(program: Command, io: Io): void {
  const command = program
    .command("check")
    .description("Tests whether a server keeps its own schemas and the published contracts.")
    .argument("[target]", "an address, a command line in quotes, a document, or a source of the config")
    .option("-c, --config <file>", "the config whose source the target names")
    .option("--mcp [server]", "the target is an MCP server")
    .option("--openapi [document]", "the target is an OpenAPI document")
    .option("--url <gateway>", "the target is a running gateway, which is checked as both")
    .option("--token-env <name>", "the environment variable that holds the token for the target")
    .option("--call <name>", "calls this tool or operation, whatever it says; may be repeated", collect)
    .option("--call-all", "calls every tool, also those that may change something")
    .option(
      "--input <name=json>",
      "an input for a tool or operation, as JSON or @file; may be repeated",
      collect,
    )
    .option("--base-url <address>", "where the API of a document is")
    .option("--allow-private", "calls an API at a private address that its document names")
    .option("--offline", "reads a document without calling anything")
    .option("--strict", "warnings fail as well")
    .option("--junit [file]", "JUnit XML, to a file or to stdout");
  addTimeoutFlag(command, "how long one call may take (default 10s)");
  addJsonFlag(command, "the report as JSON");
  command.addHelpText("after", EXAMPLES).action(
    action(io, async (target: string | undefined, flags: CheckFlags) => {
      const { runCheck } = await import("../check/run-check.ts");
      return runCheck(io, target, flags);
    }),
  );
}
