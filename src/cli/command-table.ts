import type { Command } from "commander";
import type { Io } from "./io.ts";

/** One command: what the help says about it, and how it is loaded. */
export interface CommandRow {
  readonly name: string;
  readonly group: string;
  readonly summary: string;
  /** Left out of the help. @default false */
  readonly hidden?: boolean;
  /** Adds it to a program. */
  load(): Promise<(program: Command, io: Io) => void>;
}

const USE = "Use operations";
const RUN = "Run a gateway";
const LOOK = "Look at tool results";
const TRUST = "Check and approve";

/** Every command, in the order of the help. Only the one that runs is loaded. */
export const COMMANDS: readonly CommandRow[] = [
  {
    name: "serve",
    group: RUN,
    summary: "put every source behind one MCP endpoint and one HTTP API",
    load: async () => (await import("./commands/serve.ts")).addServeCommand,
  },
  {
    name: "inspect",
    group: RUN,
    summary: "look at a config, a server or a document in the browser",
    load: async () => (await import("./commands/inspect.ts")).addInspectCommand,
  },
  {
    name: "init",
    group: RUN,
    summary: "write a config, by asking or from what other hosts have",
    load: async () => (await import("./commands/init.ts")).addInitCommand,
  },
  {
    name: "doctor",
    group: RUN,
    summary: "say what is mounted, reachable, slow or broken, and why",
    load: async () => (await import("./commands/doctor.ts")).addDoctorCommand,
  },
  {
    name: "list",
    group: USE,
    summary: "list operations or sources",
    load: async () => (await import("./commands/list.ts")).addListCommand,
  },
  {
    name: "describe",
    group: USE,
    summary: "tell everything about one operation, with an example",
    load: async () => (await import("./commands/describe.ts")).addDescribeCommand,
  },
  {
    name: "call",
    group: USE,
    summary: "call an operation, or follow a subscription",
    load: async () => (await import("./commands/call.ts")).addCallCommand,
  },
  {
    name: "types",
    group: USE,
    summary: "write TypeScript types for everything that is mounted",
    load: async () => (await import("./commands/types.ts")).addTypesCommand,
  },
  {
    name: "decode",
    group: LOOK,
    summary: "say what a tool result is: its format, its data, what is odd",
    load: async () => (await import("./commands/decode.ts")).addDecodeCommand,
  },
  {
    name: "encode",
    group: LOOK,
    summary: "write data as a tool result in any format",
    load: async () => (await import("./commands/encode.ts")).addEncodeCommand,
  },
  {
    name: "transcode",
    group: LOOK,
    summary: "turn a tool result into another format",
    load: async () => (await import("./commands/transcode.ts")).addTranscodeCommand,
  },
  {
    name: "check",
    group: TRUST,
    summary: "test whether a server keeps its schemas and the published contracts",
    load: async () => (await import("./commands/check.ts")).addCheckCommand,
  },
  {
    name: "lock",
    group: TRUST,
    summary: "pin the definitions of tools, and approve changes",
    load: async () => (await import("./commands/lock.ts")).addLockCommand,
  },
  {
    name: "completion",
    group: "More",
    summary: "write the completion script of a shell",
    load: async () => (await import("./commands/completion.ts")).addCompletionCommand,
  },
  {
    name: "tour",
    group: "More",
    summary: "call a handful of local operations and show what comes back",
    load: async () => (await import("./commands/tour.ts")).addTourCommand,
  },
  {
    name: "complete",
    group: "More",
    summary: "answer what a completion script asks",
    hidden: true,
    load: async () => (await import("./commands/completion.ts")).addCompleteCommand,
  },
];
