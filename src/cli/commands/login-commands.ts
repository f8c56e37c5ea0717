import { Argument, type Command } from "commander";
import { addJsonFlag, addTimeoutFlag } from "../flags.ts";
import type { Io } from "../io.ts";
import type { LogoutFlags } from "../login/logout-callers.ts";
import type { AuthFlags } from "../login/run-auth-status.ts";
import type { LoginFlags } from "../login/run-login.ts";
import { addExamples } from "../root-help.ts";
import { action } from "../run-command.ts";

const KEPT =
  "Tokens are kept encrypted in the state folder of the user (WAYBILL_STATE_DIR), and are shown nowhere. A gateway that runs takes a new login up by itself.";

function addConfigFlags(command: Command): Command {
  return command
    .option("-c, --config <file>", "a config file (default: the nearest waybill.config.*)")
    .option("--mcp <server>", "the MCP server at this address, instead of a config");
}

/** Adds `waybill login`. */
export function addLoginCommand(program: Command, io: Io): void {
  const command = program
    .command("login")
    .description("Log in to a source that wants a person to: an MCP server, or an HTTP API with a login.")
    .argument("[source]", "a source of the config (default: the only one)")
    .option("--paste", "paste the address that the browser ends on: for a browser on another machine")
    .option("--device", "show a code to be entered on any other device")
    .option("--no-open", "print the address, and do not open the browser");
  addConfigFlags(command);
  addTimeoutFlag(command, io, "how long to wait for the person (default 5m)");
  addExamples(command, io, [
    ["waybill login linear", "in the browser of this machine"],
    ["waybill login linear --paste", "over SSH: open the address elsewhere, paste where it leads"],
    ["waybill login linear --device", "with a code, where the authorization server gives any"],
    ["waybill login --mcp https://mcp.example/mcp", "an MCP server that stands in no config"],
  ]).addHelpText("after", `\n${KEPT}`);
  command.action(
    action(io, async (source: string | undefined, flags: LoginFlags) => {
      const { runLogin } = await import("../login/run-login.ts");
      return runLogin(io, source, flags);
    }),
  );
}

/** Adds `waybill logout`. */
export function addLogoutCommand(program: Command, io: Io): void {
  const command = program
    .command("logout")
    .description(
      "End the login of a source: forget its tokens, and have the authorization server revoke them.",
    )
    .argument("[source]", "a source of the config (default: the only one)")
    .option("--caller <name>", "end what this caller of the gateway has of their own there")
    .option("--all-callers", "end what all callers have of their own there");
  addConfigFlags(command);
  addExamples(command, io, [
    ["waybill logout linear", "the login of the gateway itself"],
    ["waybill logout linear --caller ann", "the login that ann has of her own"],
  ]).addHelpText(
    "after",
    "\nExit codes: 0 logged out, 3 logged out here, and the authorization server did not revoke the tokens.",
  );
  command.action(
    action(io, async (source: string | undefined, flags: LoginFlags & LogoutFlags) => {
      if (flags.caller !== undefined || flags.allCallers === true) {
        const { runLogoutCallers } = await import("../login/logout-callers.ts");
        return runLogoutCallers(io, source, flags);
      }
      const { runLogout } = await import("../login/run-login.ts");
      return runLogout(io, source, flags);
    }),
  );
}

/** Adds `waybill auth status`. */
export function addAuthCommand(program: Command, io: Io): void {
  const command = program
    .command("auth")
    .description(
      "Say of every source with a login who is logged in, until when, and where that is kept. No server is asked.",
    )
    .addArgument(new Argument("[what]", "what to do (default: status)").choices(["status"]));
  addConfigFlags(command);
  addJsonFlag(command, "the same as JSON; no secret is in it");
  addExamples(command, io, [
    ["waybill auth status", ""],
    [
      "waybill auth status --json | jq '.logins[] | select(.state != \"logged-in\")'",
      "what waits for a login",
    ],
  ]);
  command.action(
    action(io, async (_what: string | undefined, flags: AuthFlags) => {
      const { runAuthStatus } = await import("../login/run-auth-status.ts");
      return runAuthStatus(io, flags);
    }),
  );
}
