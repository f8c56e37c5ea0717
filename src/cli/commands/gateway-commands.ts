import { Argument, type Command, Option } from "commander";
import { safeLine } from "../../core/text/clean-text.ts";
import type { ApprovalsFlags } from "../approvals/run-approvals.ts";
import type { AuditFlags } from "../audit/run-audit.ts";
import type { CheckFlags } from "../check/run-check.ts";
import { CONNECTED_HOSTS, type ConnectedHost } from "../connect/host-config.ts";
import type { ConnectFlags } from "../connect/run-connect.ts";
import type { DoctorFlags } from "../doctor/run-doctor.ts";
import {
  addJsonFlag,
  addServingFlags,
  addSourceFlags,
  addSourceOption,
  addTimeoutFlag,
  checkChoice,
  collect,
  parseDuration,
  parseWholeNumber,
  tellBareNumber,
} from "../flags.ts";
import type { InitFlags } from "../init/init-answers.ts";
import type { InspectFlags } from "../inspect/run-inspect.ts";
import { CommandError, type Io } from "../io.ts";
import type { LockFlags } from "../lock/run-lock.ts";
import { addExamples } from "../root-help.ts";
import { action } from "../run-command.ts";
import type { ServeFlags } from "../serve/run-serve.ts";

/** Adds `waybill serve`. */
export function addServeCommand(program: Command, io: Io): void {
  const command = program
    .command("serve")
    .description(
      "Put every source of the config behind one MCP endpoint and one HTTP API. Without a config, a small world to play with is served.",
    )
    .option("-p, --port <port>", "where to listen (default: that of the config, else 4100)", (text) =>
      parseWholeNumber(text, "--port", [0, 65_535]),
    )
    .option("--host <host>", "the address to listen at (default: that of the config, else 127.0.0.1)")
    .option("--stdio", "serve MCP over stdin and stdout instead, for hosts that start their servers")
    .option("--inspect", "serve the inspector at /inspect (default: serve.inspect of the config)")
    .option("--no-inspect", "do not serve the inspector, whatever the config says")
    .option(
      "--lame-duck <time>",
      "how long to go on after SIGTERM while /ready says 503 (default: that of the config, else 5s)",
      (text) => {
        const ms = parseDuration(text, "--lame-duck", 0);
        tellBareNumber(io, text, "--lame-duck");
        return ms;
      },
    );
  addServingFlags(command);
  addSourceFlags(command);
  addExamples(command, io, [
    ["waybill serve", "MCP at /mcp, HTTP at /api, /openapi.json and /docs, Prometheus at /metrics"],
    ["waybill serve --inspect", "the inspector at /inspect: see every operation, source and call"],
    ["waybill serve --port 8080 --log-level warn", ""],
    ["waybill serve --stdio", "as an MCP server of a desktop host or an editor"],
    ["waybill serve --mcp 'npx -y some-mcp-server'", "any MCP server over HTTP"],
  ]).addHelpText(
    "after",
    "\nSIGTERM or Ctrl-C lets calls under way end (serve.drainMs of the config) and exits with 0; a second one exits at once. After SIGTERM, /ready says 503 for a while first (--lame-duck).",
  );
  command.action(
    action(io, async (flags: ServeFlags) => {
      const { runServe } = await import("../serve/run-serve.ts");
      return runServe(io, flags);
    }),
  );
}

/** Adds `waybill inspect`. */
export function addInspectCommand(program: Command, io: Io): void {
  const command = program
    .command("inspect")
    .description(
      "Look at a config, an MCP server or an OpenAPI document in the browser: what it offers, what a call gives, every call that passes.",
    )
    .argument("[target]", "an address, a command line in quotes, a document, or a source of the config")
    .option("-p, --port <port>", "where to listen (default: 4101, or the next one that is free)", (text) =>
      parseWholeNumber(text, "--port", [0, 65_535]),
    )
    .option("--host <host>", "the address to listen at (default: 127.0.0.1)")
    .option("--open", "open the page in the browser");
  addServingFlags(command);
  addSourceFlags(command);
  addExamples(command, io, [
    ["waybill inspect", "the config of this folder, or a small world to play with"],
    ["waybill inspect --open", "the same, in the browser at once"],
    ["waybill inspect 'npx -y some-mcp-server'", "the tools of any MCP server"],
    ["waybill inspect ./openapi.yaml", "the operations of an HTTP API"],
    ["waybill inspect https://mcp.example/mcp --token-env MCP_TOKEN", ""],
  ]).addHelpText(
    "after",
    `\nThe address of the page is the only line on stdout. It holds a token that is new each time and lets everybody who has it do all that you
may do here; /mcp and /api ask for it too. --open puts it on the command line of the browser, which other users of this machine may see.`,
  );
  command.action(
    action(io, async (target: string | undefined, flags: InspectFlags) => {
      const { runInspect } = await import("../inspect/run-inspect.ts");
      return runInspect(io, target, flags);
    }),
  );
}

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
    .description("Writes a config into this folder: by asking, or from what other hosts and flags say.")
    .option(
      "-y, --yes",
      "ask nothing: take what other flags name, else what this project has, else begin with a sample",
    )
    .option("--from <file>", "take over the MCP servers of another host's file; may be repeated", collect)
    .option(
      "--openapi <name=document>",
      "mount an HTTP API by its OpenAPI document; may be repeated",
      collect,
    )
    .option("--mcp <name=server>", "mount an MCP server: a command line or a URL; may be repeated", collect)
    .option("--sample", "write a module with a sample operation")
    .addOption(new Option("--format <format>", "how the config is written").choices(["json", "yaml", "ts"]))
    .option("--port <port>", "the port to serve on", (text) => parseWholeNumber(text, "--port", [0, 65_535]))
    .option("--inspector", "serve the inspector at /inspect")
    .option("--force", "replace a config that is there; the old one is kept beside it")
    .option("--dry-run", "print what would be written, and write nothing");
  addJsonFlag(command, "what was written, as JSON");
  addExamples(command, io, EXAMPLES).addHelpText("after", `\n${MORE}`);
  command.action(
    action(io, async (flags: InitFlags) => {
      const { runInit } = await import("../init/run-init.ts");
      await runInit(io, flags);
    }),
  );
}

/** Adds `waybill doctor`. */
export function addDoctorCommand(program: Command, io: Io): void {
  const command = program
    .command("doctor")
    .description(
      "Starts every source as the gateway would, and says what is mounted, slow or broken, and what to do.",
    );
  addSourceFlags(command);
  addSourceOption(command);
  addTimeoutFlag(command, io, "how long sources have to come up (default 1m)");
  addJsonFlag(command, "everything that was found, as JSON");
  addExamples(command, io, [
    ["waybill doctor", "everything about the config here"],
    ["waybill doctor --config team/waybill.config.yaml", "about another"],
    ["waybill doctor --json | jq '.diagnoses[] | select(.status == \"problem\")'", "problems alone"],
  ]).addHelpText("after", "\nExit codes: 0 healthy, 1 there are problems, 2 the config cannot be used.");
  command.action(
    action(io, async (flags: DoctorFlags) => {
      const { runDoctor } = await import("../doctor/run-doctor.ts");
      return runDoctor(io, flags);
    }),
  );
}

const NOTES = `
What is approved is kept in waybill.lock.json beside the config, or where "lock" of the config says. With "lock": true the
gateway refuses calls of tools that are not as approved.
Where nobody can be asked, --approve needs --yes, unless nothing of a server was approved before.

Exit codes: 0 all as approved, 1 some tools are not, 2 usage, 3 a server cannot be reached.`;

/** Adds `waybill lock`. */
export function addLockCommand(program: Command, io: Io): void {
  const command = program
    .command("lock")
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

const CONNECT_EXAMPLES = [
  ["waybill connect claude", "the block for Claude Desktop, and where it goes"],
  ["waybill connect cursor --write", "put it into Cursor's mcp.json, after asking"],
  ["waybill connect vscode --write --yes", "into VS Code's mcp.json, without asking"],
  [
    "waybill connect codex --config ~/projects/waybill.config.json --name projects",
    "another config, under another name",
  ],
] as const;

const CONNECT_MORE =
  "The block has whole paths: node, this command and the config. --write keeps everything else in the file, comments too, keeps the old file beside it, and refuses a file that cannot be read.";

/** Adds `waybill connect`. */
export function addConnectCommand(program: Command, io: Io): void {
  const command = program
    .command("connect")
    .description(
      "Prints what a host needs to start this gateway over stdio, or writes it into the host's file.",
    )
    .addArgument(new Argument("<host>", "which host").choices(CONNECTED_HOSTS))
    .option("-c, --config <file>", "the config to serve (default: the nearest waybill.config.*)")
    .option("--name <name>", "what the host calls the gateway (default: waybill)")
    .option("--file <file>", "another file of the host, such as .cursor/mcp.json of a project")
    .option("--write", "write it into the file, after asking")
    .option("-y, --yes", "do not ask");
  addJsonFlag(command, "the entry and the file, as JSON");
  addExamples(command, io, CONNECT_EXAMPLES).addHelpText("after", `\n${CONNECT_MORE}`);
  command.action(
    action(io, async (host: ConnectedHost, flags: ConnectFlags) => {
      const { runConnect } = await import("../connect/run-connect.ts");
      await runConnect(io, host, flags);
    }),
  );
}

const CHECK_NOTES = `A target is an address (https://host/mcp, https://host/openapi.json, or a running gateway, which is checked as both),
a command line in quotes, a document, or the name of a source in the config.

Only tools that say that they only read, and GET operations without required parameters, are called; others where
--call names them. Inputs are made from the schemas; --input gives better ones.

Exit codes: 0 nothing failed, 1 something did (with --strict warnings too), 2 usage, 3 it cannot be reached.`;

const CHECK_EXAMPLES: readonly (readonly [string, string])[] = [
  ['waybill check "npx -y @modelcontextprotocol/server-everything"', "an MCP server"],
  ["waybill check https://mcp.example/mcp --token-env MCP_TOKEN", "one at an address"],
  ["waybill check ./openapi.yaml --offline", "a document alone"],
  ["waybill check ./openapi.yaml --base-url http://localhost:3000 --input getPet='{\"id\":1}'", "an API"],
  ["waybill check github --strict --junit report.xml", "a source of the config, in CI"],
];

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
    .option("--call-all", "calls every tool of an MCP server, also those that may change something")
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
  addTimeoutFlag(command, io, "how long one call may take (default 10s)");
  addJsonFlag(command, "the report as JSON");
  addExamples(command, io, CHECK_EXAMPLES)
    .addHelpText("after", `\n${CHECK_NOTES}`)
    .action(
      action(io, async (target: string | undefined, flags: CheckFlags) => {
        const { runCheck } = await import("../check/run-check.ts");
        return runCheck(io, target, flags);
      }),
    );
}

const AUDIT_NOTES = `
The records are in the file that "audit" of the config names. Each names the hash of the one before it; "audit verify" follows the
chain, and with --log or --head compares it with heads that the log of the gateway told of: a cut end shows only against one of those.

Exit code of "audit verify": 0 when the chain is whole, 1 when it is not, 2 when there is none.`;

/** Adds `waybill audit`. */
export function addAuditCommand(program: Command, io: Io): void {
  const time = (flag: string) => (text: string) => parseTime(text, flag);
  const command = program
    .command("audit")
    .description("Shows who called what, and with verify whether the records are whole.")
    .addArgument(new Argument("[verify]", "follows the chain of records").choices(["verify"]))
    .option("-c, --config <file>", "a config file (default: the nearest waybill.config.*)")
    .option("--file <file>", "the audit file itself")
    .option("--subject <name>", "calls of this caller alone")
    .option("--operation <pattern>", "calls of these operations alone, such as 'github.*'")
    .option("--source <name>", "calls of this source alone")
    .option("--outcome <outcome>", "ok, tool_error or call_error", (text) =>
      checkChoice(text, "--outcome", ["ok", "tool_error", "call_error"] as const),
    )
    .option("--issuer <address>", "calls of callers whom this authorization server vouches for")
    .option("--as <account>", "calls that were made as this account at their source")
    .option("--approver <name>", "calls that this person approved or denied")
    .option("--found", "calls in whose results a guard found something")
    .option("--since <time>", "a date, or how long ago: 30m, 12h, 7d", time("--since"))
    .option("--until <time>", "a date, or how long ago", time("--until"))
    .option("--last <count>", "how many are shown (default: 50)", (text) =>
      parseWholeNumber(text, "--last", [1, 1_000_000]),
    )
    .option("--head <seq:hash>", "with verify: a head that was kept; may be repeated", collect)
    .option("--log <file>", "with verify: a log of the gateway in JSON, whose heads are compared");
  addJsonFlag(command, "records as JSON, one in each line; with verify what was found");
  addExamples(command, io, [
    ["waybill audit", "the last 50"],
    ["waybill audit --subject ada --since 24h", "what one caller did today"],
    ["waybill audit verify --log gateway.log", "whether anything was changed, taken out or cut off"],
  ]);
  command.addHelpText("after", AUDIT_NOTES);
  command.action(
    action(io, async (verify: string | undefined, flags: AuditFlags) => {
      const { runAudit, runAuditVerify } = await import("../audit/run-audit.ts");
      return verify === undefined ? runAudit(io, flags) : runAuditVerify(io, flags);
    }),
  );
}

/** Adds `waybill approvals`. */
export function addApprovalsCommand(program: Command, io: Io): void {
  const actions = ["list", "show", "approve", "deny"] as const;
  const command = program
    .command("approvals")
    .description("Show calls that wait until a person has approved them, and approve or deny them.")
    .addArgument(new Argument("[action]", "what to do (default: list)").choices(actions))
    .argument("[id]", "the request: as many digits of its id as name it alone")
    .option("-c, --config <file>", "a config file (default: the nearest waybill.config.*)")
    .option("--url <gateway>", "a running gateway instead of the one that runs for the config: its address")
    .option(
      "--token-env <name>",
      "the environment variable that holds the token for --url (default: WAYBILL_TOKEN)",
    )
    .option("--comment <text>", "why; told to the caller with a no");
  addJsonFlag(command);
  addExamples(command, io, [
    ["waybill approvals", "what waits"],
    ["waybill approvals show 3f9ac2", "the whole of one call"],
    ["waybill approvals approve 3f9ac2", "the same call runs once"],
    ["waybill approvals deny 3f9ac2 --comment 'not on a Friday'", "and why"],
  ]);
  command.action(
    action(io, async (given: string | undefined, id: string | undefined, flags: ApprovalsFlags) => {
      const { runApprovals } = await import("../approvals/run-approvals.ts");
      const what = actions.find((one) => one === given) ?? "list";
      return runApprovals(io, what, { ...flags, id });
    }),
  );
}

const AGO: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads a date, or how long ago something was. */
function parseTime(text: string, flag: string): Date {
  const [, digits, unit = ""] = /^(\d{1,6})([mhd])$/.exec(text.trim()) ?? [];
  const time = digits === undefined ? Date.parse(text) : Date.now() - Number(digits) * (AGO[unit] ?? 0);
  if (!Number.isNaN(time)) return new Date(time);
  const example = "2026-11-19 or 2026-11-19T08:00Z, or how long ago: 30m, 12h, 7d";
  throw new CommandError(`${flag} takes a date, such as ${example}; it is "${safeLine(text, 40)}".`);
}
