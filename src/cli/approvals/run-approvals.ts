import { isPlainObject } from "../../core/json/json-value.ts";
import { safeLine, safeText } from "../../core/text/clean-text.ts";
import type { ApprovalView } from "../../gateway/approvals/approvals.ts";
import { APPROVALS_PATH } from "../../gateway/approvals/gateway-approvals.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { createPastedCommand } from "../pasted-command.ts";
import { findGateway, type GatewayFlags } from "../session/find-gateway.ts";
import {
  askGateway,
  type GatewayAnswer,
  type RemoteAddress,
  RemoteFault,
} from "../session/remote-gateway.ts";
import { createStyle, toSafeJson, writeOut } from "../terminal/style.ts";
import { renderTable } from "../terminal/table.ts";

/** Flags of `waybill approvals`. */
export interface ApprovalsFlags extends GatewayFlags {
  readonly json?: boolean | undefined;
  /** Why it is decided like that. */
  readonly comment?: string | undefined;
}

type ApprovalAction = "list" | "show" | "approve" | "deny";

/** Digits of an id that are shown, and are mostly enough to name it. */
const SHORT_ID = 12;
const LEAST_ID = 4;
const API = `${APPROVALS_PATH}/api`;

/** Runs `waybill approvals`, on the gateway that runs. */
export async function runApprovals(
  io: Io,
  what: ApprovalAction,
  { id, ...flags }: ApprovalsFlags & { readonly id: string | undefined },
): Promise<number> {
  const address = await findGateway(io, flags);
  if (what === "list") return await list(io, flags, await waitingAt(address));
  const view = chosen(await waitingAt(address), id, createPastedCommand(io, flags)("approvals"));
  if (what === "show") return await show(io, flags, view);
  const { comment } = flags;
  const body = JSON.stringify({ decision: what, ...(comment !== undefined && { comment }) });
  const { approval } = contentOf(await asked(address, `/${view.id}`, body));
  if (flags.json) await writeOut(io, `${toSafeJson({ approval }, 2)}\n`);
  else if (!io.quiet) {
    const done = what === "approve" ? "Approved. The same call runs once." : "Denied.";
    await writeOut(io, `${safeLine(view.operation)} of ${callerOf(view)}: ${done}\n`);
  }
  return EXIT.ok;
}

async function list(io: Io, { json }: ApprovalsFlags, views: readonly ApprovalView[]): Promise<number> {
  if (json) {
    await writeOut(io, `${toSafeJson({ approvals: views }, 2)}\n`);
    return EXIT.ok;
  }
  if (views.length === 0) {
    if (!io.quiet) io.stderr.write("waybill: no call waits for approval.\n");
    return EXIT.ok;
  }
  const head = ["id", "state", "caller", "operation", "input", "asked"];
  const rows = views.map((view) => [
    view.id.slice(0, SHORT_ID),
    view.state,
    callerOf(view),
    view.operation,
    safeLine(view.input, 60),
    new Date(view.askedAt).toISOString(),
  ]);
  await writeOut(io, `${renderTable(rows, { head, stream: io.stdout, env: io.env })}\n`);
  return EXIT.ok;
}

async function show(io: Io, { json }: ApprovalsFlags, view: ApprovalView): Promise<number> {
  if (json) {
    await writeOut(io, `${toSafeJson({ approval: view }, 2)}\n`);
    return EXIT.ok;
  }
  const style = createStyle(io.stdout, io.env);
  const { by, via, comment } = view.decision ?? {};
  const decided = [by?.subject, via && `(${via})`, comment].filter(Boolean).join(" ");
  const words = [view.title, view.description].filter(Boolean).join("\n");
  const facts: (readonly [string, string])[] = [
    ["id", view.id],
    ["state", view.state],
    ["caller", callerOf(view)],
    ["operation", view.operation],
    ["source", view.source ?? ""],
    ["asked", new Date(view.askedAt).toISOString()],
    ["expires", new Date(view.expiresAt).toISOString()],
    ["decided", decided],
    ["destructive", view.destructive === undefined ? "" : `${view.destructive}, as it says`],
  ];
  const shown = facts.filter(([, value]) => value !== "");
  const lines = [
    ...shown.map(([name, value]) => `${style.dim(name.padEnd(12))}${safeLine(value, 1_000)}`),
    "",
    style.bold("Input"),
    safeText(view.input) || "none",
    "",
    style.bold("What it says of itself, checked by nobody"),
    safeText(words) || "nothing",
  ];
  await writeOut(io, `${lines.join("\n")}\n`);
  return EXIT.ok;
}

async function waitingAt(address: RemoteAddress): Promise<readonly ApprovalView[]> {
  const { approvals } = contentOf(await asked(address, "", undefined));
  if (Array.isArray(approvals) && approvals.every(isView)) return approvals;
  throw new CommandError("The gateway answered with what is no list of approvals.", EXIT.callError);
}

async function asked(address: RemoteAddress, path: string, body: string | undefined): Promise<GatewayAnswer> {
  try {
    return await askGateway(address, `${API}${path}`, body);
  } catch (thrown) {
    if (!(thrown instanceof RemoteFault)) throw thrown;
    throw new CommandError(
      `The gateway at ${safeLine(address.base, 200)} cannot be reached.`,
      EXIT.callError,
      {
        cause: thrown,
      },
    );
  }
}

function contentOf({ status, value }: GatewayAnswer): Readonly<Record<string, unknown>> {
  if (status === 200 && isPlainObject(value)) return value;
  if (status === 401) {
    throw new CommandError(
      "The gateway wants a token: set WAYBILL_TOKEN, or name the variable that holds it with --token-env.",
      EXIT.callError,
    );
  }
  const said = isPlainObject(value) ? value["error"] : undefined;
  const reason = typeof said === "string" ? safeLine(said, 300) : `It answered ${status}.`;
  throw new CommandError(reason, EXIT.callError);
}

function isView(value: unknown): value is ApprovalView {
  if (!isPlainObject(value) || !isPlainObject(value["caller"])) return false;
  const isText = ["id", "state", "operation", "input", "description"].every(
    (name) => typeof value[name] === "string",
  );
  return isText && [value["askedAt"], value["expiresAt"]].every((at) => Number.isSafeInteger(at));
}

/** A few digits name a request where they name one alone. */
function chosen(views: readonly ApprovalView[], id: string | undefined, list: string): ApprovalView {
  if (id === undefined || id.length < LEAST_ID)
    throw new CommandError(`Name the request: at least ${LEAST_ID} digits of its id, as "${list}" shows it.`);
  const fitting = views.filter((view) => view.id.startsWith(id));
  const [first] = fitting;
  if (first === undefined)
    throw new CommandError(`There is no request "${safeLine(id, 80)}"; "${list}" lists them.`);
  if (fitting.length > 1)
    throw new CommandError(`"${safeLine(id, 80)}" fits ${fitting.length} requests; give more digits of it.`);
  return first;
}

function callerOf({ caller: { subject, issuer } }: ApprovalView): string {
  if (typeof subject !== "string") return "anonymous";
  return safeLine(typeof issuer === "string" ? `${subject} (${issuer})` : subject, 200);
}
