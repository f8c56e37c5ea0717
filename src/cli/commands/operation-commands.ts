import { Argument, type Command } from "commander";
import { FORMAT_NAMES } from "../../core/result/tool-result.ts";
import type { CallFlags } from "../call/run-call.ts";
import {
  addJsonFlag,
  addSessionFlags,
  addSourceFlags,
  addTimeoutFlag,
  checkChoice,
  parseWholeNumber,
} from "../flags.ts";
import type { Io } from "../io.ts";
import type { DescribeFlags } from "../list/run-describe.ts";
import type { ListFlags } from "../list/run-list.ts";
import { addExamples } from "../root-help.ts";
import { action } from "../run-command.ts";
import type { TasksFlags } from "../tasks/run-tasks.ts";
import { wantsColors } from "../terminal/style.ts";
import type { TypesFlags } from "../types/write-types.ts";

/** Adds `waybill list`. */
export function addListCommand(program: Command, io: Io): void {
  const command = program
    .command("list")
    .description("List the operations that can be called, or the sources they come from.")
    .argument("[words...]", 'what is looked for, in a few words, or a pattern of ids such as "parcel.*"')
    .option("--sources", "list the sources: how they are doing, what and how much they hold")
    .option("--strict", "exit with 3 when a source is down");
  addJsonFlag(command, "everything that is known, schemas included, as JSON");
  addSourceFlags(command);
  addSessionFlags(command);
  addTimeoutFlag(command, io, "how long each source has to come up (default 30s)");
  addExamples(command, io, [
    ["waybill list", "every operation"],
    ["waybill list 'parcel.*'", "by a pattern of ids"],
    ["waybill list track a parcel", "by what an operation does, the best first"],
    ["waybill list --sources", "what is mounted, from where"],
    ["waybill list --json | jq '.operations[].id'", "for programs"],
  ]);
  command.action(
    action(io, async (words: readonly string[], flags: ListFlags) => {
      const { runList } = await import("../list/run-list.ts");
      return runList(io, words.length === 0 ? undefined : words.join(" "), flags);
    }),
  );
}

/** Adds `waybill describe`. */
export function addDescribeCommand(program: Command, io: Io): void {
  const command = program
    .command("describe")
    .description(
      "Tell everything about one operation: what it takes and gives, who may call it, and an example.",
    )
    .argument("<operation>", "its id, such as parcel.track")
    .option("--schema", "the JSON Schemas of input and output, alone");
  addJsonFlag(command, "everything that is known as JSON");
  addSourceFlags(command);
  addSessionFlags(command);
  addTimeoutFlag(command, io, "how long the source has to come up");
  addExamples(command, io, [
    ["waybill describe parcel.book", "fields, errors and an example to paste"],
    ["waybill describe parcel.book --schema", "the JSON Schemas"],
  ]);
  command.action(
    action(io, async (operation: string, flags: DescribeFlags) => {
      const { runDescribe } = await import("../list/run-describe.ts");
      return runDescribe(io, operation, flags);
    }),
  );
}

const INPUTS = `Inputs:
  key=value        a member; read by the schema: numbers, true and false, JSON for lists and objects
  key:=json        a member that is JSON, whatever the schema says
  key=@file        a member from a file: text, JSON, or base64 where the schema asks for bytes (key@file too; key=@@x is the text "@x")
  a.b=value        a member of a member, a[0].b of an item (the first name may be left out where only one fits); a key given again makes a list
  '{"a": 1}'       the whole input; @file.json from a file, - from stdin; key=value is added to it
  Without inputs, a file redirected to stdin is read; a pipe is read only where the operation cannot do without input. Say - to be sure.

Exit codes: 0 ok; 1 a tool error, or a 4xx that the API's document names (but 401, 403, 408 and 429); 2 usage; 3 the call failed; 130 interrupted.`;

const EXAMPLES: readonly (readonly [string, string])[] = [
  ["waybill call parcel.list limit=3", "key=value"],
  [`waybill call parcel.book '{"to": "Lisbon", "kg": 2}'`, "JSON"],
  ["waybill call parcel.book @parcel.json kg=3", "a file, and a member besides"],
  ["echo '{}' | waybill call parcel.list -", "stdin"],
  ["waybill call parcel.watch --take 1", "a subscription"],
  ["waybill call report.year --detach", "work that takes hours; see waybill tasks"],
  ["waybill call mcp.echo message=hi --mcp 'npx -y some-mcp-server'", "a tool of any MCP server"],
];

/** Adds `waybill call`. */
export function addCallCommand(program: Command, io: Io): void {
  const command = program
    .command("call")
    .description("Call an operation and print its data; a subscription prints one line for each value.")
    .argument("<operation>", "its id, such as parcel.track")
    .argument("[inputs...]", "see below")
    .option("--envelope", "the whole envelope: where the data came from and how it fared")
    .option("--format <name>", `a tool result instead: ${FORMAT_NAMES.join(", ")}`, (text) =>
      checkChoice(text, "--format", FORMAT_NAMES),
    )
    .option("--raw", "text as text, not as JSON, in a pipe too")
    .option(
      "-o, --output <file>",
      "save the images, sounds and files of the result, or else its text or JSON; several are numbered",
    )
    .option("--all", "follow pages: one line for each")
    .option("--take <n>", "end after so many values or pages", (text) =>
      parseWholeNumber(text, "--take", [1, 1_000_000_000]),
    )
    .option(
      "--idempotency-key <key>",
      "with --url: the gateway runs a change once for the same key, however often it is sent",
    )
    .option("--detach", "leave the call to the running gateway, and print the id of its task")
    .option("--progress", "show what the operation reports while it runs, on stderr");
  addJsonFlag(command, "compact JSON, on a terminal too");
  addTimeoutFlag(command, io, "the longest the call may take");
  addSourceFlags(command);
  addSessionFlags(command);
  addExamples(command, io, EXAMPLES).addHelpText("after", `\n${INPUTS}`);
  command.action(
    action(io, async (id: string, words: string[], flags: CallFlags) => {
      const { runCall } = await import("../call/run-call.ts");
      return runCall(io, { id, words }, flags);
    }),
  );
}

/** Adds `waybill tasks`. */
export function addTasksCommand(program: Command, io: Io): void {
  const actions = ["list", "show", "wait", "cancel"] as const;
  const command = program
    .command("tasks")
    .description("Show calls of yours that a running gateway goes on with, wait for them, and cancel them.")
    .addArgument(new Argument("[action]", "what to do (default: list)").choices(actions))
    .argument("[id]", "the task: as many digits of its id as name it alone")
    .option("-c, --config <file>", "a config file (default: the nearest waybill.config.*)")
    .option("--url <gateway>", "a running gateway instead of the one that runs for the config: its address")
    .option(
      "--token-env <name>",
      "the environment variable that holds the token for --url (default: WAYBILL_TOKEN)",
    );
  addJsonFlag(command);
  addTimeoutFlag(command, io, "the longest to wait; the task goes on");
  addExamples(command, io, [
    ["waybill tasks", "yours, the latest first"],
    ["waybill tasks show 3f9ac2", "how one is doing"],
    ["waybill tasks wait 3f9ac2", "its result, when it is there"],
    ["waybill tasks wait 3f9ac2 --timeout 60s --json", "for programs"],
    ["waybill tasks cancel 3f9ac2", "end it"],
  ]).addHelpText(
    "after",
    "\nExit codes: 0 ok; 1 wait: a tool error; 2 usage; 3 there is none, it failed, or it has not ended yet; 130 interrupted.",
  );
  command.action(
    action(io, async (given: string | undefined, id: string | undefined, flags: TasksFlags) => {
      const { runTasks } = await import("../tasks/run-tasks.ts");
      const what = actions.find((one) => one === given) ?? "list";
      return runTasks(io, what, { ...flags, id });
    }),
  );
}

const MORE = `The file is a module that your tsconfig.json has to include; nothing needs to import it. From then on calls by id
are typed: registry.execute("parcel.track", { id: "P-1001" }), and so are clients made by createClient. The types
of single operations can be imported from it, such as ParcelTrackInput.

A value that fits a schema always fits its type. So an object that may have further properties says so; with --closed those
are left out, and a misspelt property is a mistake.

Exit code: 0 when written or up to date, 1 when --check finds another text, 3 when a source is down.`;

/** Adds `waybill types`. */
export function addTypesCommand(program: Command, io: Io): void {
  const command = program
    .command("types")
    .description("Write a TypeScript module that types every operation that is mounted.")
    .option("-o, --out <file>", "the file to write; - for stdout (default: waybill-types.ts)")
    .option("--check", "write nothing; exit with 1 when the file is out of date")
    .option("--closed", "leave out properties that a schema permits without naming them")
    .option("--partial", "go on without the sources that are down");
  addJsonFlag(command, "what was written or found, as JSON: file, operations, state");
  addSourceFlags(command);
  addSessionFlags(command);
  addExamples(command, io, [
    ["waybill types", "writes waybill-types.ts"],
    ["waybill types --out src/waybill-types.ts", "elsewhere"],
    ["waybill types --check", "in CI"],
    ["waybill types --openapi openapi.yaml --out -", "of one document, to stdout"],
  ]).addHelpText("after", `\n${MORE}`);
  command.action(
    action(io, async (flags: TypesFlags) => {
      const { runTypes } = await import("../types/write-types.ts");
      return runTypes(io, flags);
    }),
  );
}

/** Adds `waybill tour`. */
export function addTourCommand(program: Command, io: Io): void {
  const command = program
    .command("tour")
    .description("Call a handful of local operations and show what comes back: every outcome there is.");
  addJsonFlag(command, "JSON lines: one for each stop of the tour");
  addExamples(command, io, [
    ["waybill tour", "every outcome, as people read it"],
    ["waybill tour --json", "as programs do"],
  ]);
  command.action(
    action(io, async (flags: { readonly json?: boolean }) => {
      const { runTour } = await import("../tour.ts");
      await runTour({
        write: (text) => void io.stdout.write(text),
        json: flags.json ?? false,
        colors: wantsColors(io.stdout, io.env),
      });
    }),
  );
}
