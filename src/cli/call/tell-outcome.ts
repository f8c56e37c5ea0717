import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { type CallError, detailsToSend } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { safeLine, safeText } from "../../core/text/safe-text.ts";
import { schemaOf } from "../../gateway/schema-of.ts";
import type { Io } from "../io.ts";
import { nearestNames } from "../nearest-names.ts";
import { spelledCommand } from "../spelled-command.ts";
import { toSafeJson } from "../terminal/json-output.ts";
import { memberSchemas, membersOf, partsOf } from "./input-schema.ts";

/** Says that an operation ran and said no. */
export function tellToolError(io: Io, { meta }: ResponseEnvelope): void {
  const { code, message } = meta.waybill ?? {};
  const words = [code, message ?? textOf(meta)].filter((word) => typeof word === "string" && word !== "");
  io.stderr.write(
    `waybill: the operation said no${words.length > 0 ? `: ${safeLine(words.join(" "), 2_000)}` : ""}\n`,
  );
}

/** What an MCP server wrote for people, when it gave no message otherwise. */
function textOf(meta: ResponseEnvelope["meta"]): string {
  if (meta.source !== "mcp") return "";
  const texts = meta.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  return texts.join(" ");
}

/** Fields of an output that are named. */
const MOST_MISFITS = 3;

/** Says that the output is not what the operation promises, and where; the data is written all the same. */
export function tellMisfit(io: Io, { meta }: ResponseEnvelope): void {
  const { violations = [] } = meta.waybill ?? {};
  if (io.quiet || violations.length === 0) return;
  const lines = violations.slice(0, MOST_MISFITS).map(({ pointer, expected, found }) => {
    const field = fieldOf(pointer);
    return `  ${safeLine(`${field === "" ? "the output" : field} must be ${expected}; it is ${found}`, 500)}`;
  });
  const left = violations.length - lines.length;
  if (left > 0) lines.push(`  and ${left} more`);
  io.stderr.write(`waybill: the output does not match its schema:\n${lines.join("\n")}\n`);
}

/** Says why a call failed, with what is wrong in which field, and what to do. */
export function tellCallError(
  io: Io,
  error: CallError,
  operation: AnyOperation,
  flags: { readonly json?: boolean },
): void {
  if (flags.json) {
    // Programs get one line that they can read; it is no result, so it is not on stdout.
    io.stderr.write(`${toSafeJson({ error: error.toJSON() })}\n`);
    return;
  }
  const details = detailsToSend(error);
  const issues = isPlainObject(details) ? details["issues"] : undefined;
  const listed = Array.isArray(issues)
    ? issues.slice(0, 20).flatMap((issue) => issueLine(issue, operation))
    : [];
  const lines = [`waybill: ${headline(error, listed.length > 0)} (${safeLine(error.code, 80)})`, ...listed];
  if (details !== undefined && !Array.isArray(issues))
    lines.push(`  ${safeLine(toSafeJson(details), 1_000)}`);
  const command = spelledCommand(io);
  if (error.code === "DEFINITION_CHANGED")
    lines.push(`  "${command} lock" shows what changed; "${command} lock --approve" approves it.`);
  else if (error.correctable) lines.push(`  "${command} describe ${operation.id}" shows what it takes.`);
  else if (error.retryable) lines.push("  The same call may work later.");
  io.stderr.write(`${lines.join("\n")}\n`);
}

/** A message of several lines stays so, but none of them looks like one of ours; what is listed below it is not said twice. */
function headline({ message }: CallError, hasList: boolean): string {
  const said = hasList ? message.replace(/(does not match its schema)\b[\s\S]*$/, "$1.") : message;
  return safeText(said).trim().replaceAll("\n", "\n  ");
}

function issueLine(issue: unknown, operation: AnyOperation): readonly string[] {
  if (!isPlainObject(issue)) return [];
  const { pointer, expected, found } = issue;
  if (typeof pointer !== "string") return [];
  const field = fieldOf(pointer);
  const near = field === "" ? [] : nearMember(field, operation);
  const hint = near.length > 0 ? `; did you mean ${near.map((name) => `"${name}"`).join(" or ")}?` : "";
  const isMissing = expected === "a required property" || found === "nothing";
  const what = isMissing ? "is missing" : `must be ${String(expected)}; it is ${String(found)}${hint}`;
  return [`  ${safeLine(`${field === "" ? "the input" : field} ${what}`, 500)}`];
}

/** A JSON pointer as the key of an input. */
function fieldOf(pointer: string): string {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(".");
}

/** Names that may be meant by a member that is not known: near ones, and the same name one level further down. */
function nearMember(field: string, operation: AnyOperation): readonly string[] {
  const schema = schemaOf(operation, "input");
  if (schema === undefined) return [];
  const top = partsOf(schema, schema);
  const { names } = membersOf(top);
  if (names.includes(field.split(".", 1)[0] as string)) return [];
  const inside = names.filter((name) => {
    const parts = memberSchemas(top, name, schema) as JsonSchemaObject[];
    return membersOf(parts).names.includes(field);
  });
  if (inside.length > 0) return inside.slice(0, 2).map((name) => `${name}.${field}`);
  return nearestNames(field, names).slice(0, 2);
}
