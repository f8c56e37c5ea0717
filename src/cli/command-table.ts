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
    load: async () => (await import("./commands/gateway-commands.ts")).addServeCommand,
  },
  {
    name: "inspect",
    group: RUN,
    summary: "look at a config, a server or a document in the browser",
    load: async () => (await import("./commands/gateway-commands.ts")).addInspectCommand,
  },
  {
    name: "init",
    group: RUN,
    summary: "write a config, by asking or from what other hosts have",
    load: async () => (await import("./commands/gateway-commands.ts")).addInitCommand,
  },
  {
    name: "connect",
    group: RUN,
    summary: "add this gateway to Claude Desktop, Cursor, VS Code or Codex",
    load: async () => (await import("./commands/gateway-commands.ts")).addConnectCommand,
  },
  {
    name: "doctor",
    group: RUN,
    summary: "say what is mounted, reachable, slow or broken, and why",
    load: async () => (await import("./commands/gateway-commands.ts")).addDoctorCommand,
  },
  {
    name: "login",
    group: RUN,
    summary: "log in to a source that wants a person to",
    load: async () => (await import("./commands/login-commands.ts")).addLoginCommand,
  },
  {
    name: "logout",
    group: RUN,
    summary: "end the login of a source, and revoke its tokens",
    load: async () => (await import("./commands/login-commands.ts")).addLogoutCommand,
  },
  {
    name: "auth",
    group: RUN,
    summary: "say who is logged in where, and where that is kept",
    load: async () => (await import("./commands/login-commands.ts")).addAuthCommand,
  },
  {
    name: "list",
    group: USE,
    summary: "list operations or sources",
    load: async () => (await import("./commands/operation-commands.ts")).addListCommand,
  },
  {
    name: "describe",
    group: USE,
    summary: "tell everything about one operation, with an example",
    load: async () => (await import("./commands/operation-commands.ts")).addDescribeCommand,
  },
  {
    name: "call",
    group: USE,
    summary: "call an operation, or follow a subscription",
    load: async () => (await import("./commands/operation-commands.ts")).addCallCommand,
  },
  {
    name: "tasks",
    group: USE,
    summary: "show calls that go on at a gateway, wait for them, cancel them",
    load: async () => (await import("./commands/operation-commands.ts")).addTasksCommand,
  },
  {
    name: "types",
    group: USE,
    summary: "write TypeScript types for everything that is mounted",
    load: async () => (await import("./commands/operation-commands.ts")).addTypesCommand,
  },
  {
    name: "decode",
    group: LOOK,
    summary: "say what a tool result is: its format, its data, what is odd",
    load: async () => (await import("./commands/result-commands.ts")).addDecodeCommand,
  },
  {
    name: "encode",
    group: LOOK,
    summary: "write data as a tool result in any format",
    load: async () => (await import("./commands/result-commands.ts")).addEncodeCommand,
  },
  {
    name: "transcode",
    group: LOOK,
    summary: "turn a tool result into another format",
    load: async () => (await import("./commands/result-commands.ts")).addTranscodeCommand,
  },
  {
    name: "check",
    group: TRUST,
    summary: "test whether a server keeps its schemas and the published contracts",
    load: async () => (await import("./commands/gateway-commands.ts")).addCheckCommand,
  },
  {
    name: "lock",
    group: TRUST,
    summary: "pin the definitions of tools, and approve changes",
    load: async () => (await import("./commands/gateway-commands.ts")).addLockCommand,
  },
  {
    name: "audit",
    group: TRUST,
    summary: "show who called what, and whether the records are whole",
    load: async () => (await import("./commands/gateway-commands.ts")).addAuditCommand,
  },
  {
    name: "approvals",
    group: TRUST,
    summary: "show calls that wait for a person, and approve or deny them",
    load: async () => (await import("./commands/gateway-commands.ts")).addApprovalsCommand,
  },
  {
    name: "completion",
    group: "More",
    summary: "write the completion script of a shell",
    load: async () => (await import("./completion.ts")).addCompletionCommand,
  },
  {
    name: "tour",
    group: "More",
    summary: "call a handful of local operations and show what comes back",
    load: async () => (await import("./commands/operation-commands.ts")).addTourCommand,
  },
  {
    name: "complete",
    group: "More",
    summary: "answer what a completion script asks",
    hidden: true,
    load: async () => (await import("./completion.ts")).addCompleteCommand,
  },
];
