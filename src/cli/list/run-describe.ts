import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { safeLine, safeText } from "../../core/text/safe-text.ts";
import { errorsOf, operationJson } from "../../gateway/operation-json.ts";
import { schemaOf } from "../../gateway/schema-of.ts";
import { partsOf } from "../call/input-schema.ts";
import { findOperation } from "../find-operation.ts";
import { EXIT, type Io } from "../io.ts";
import { openSession, type SourceFlags } from "../session.ts";
import { spelledCommand } from "../spelled-command.ts";
import { paintJson, toSafeJson } from "../terminal/json-output.ts";
import { createStyle, type Style } from "../terminal/style.ts";
import { renderTable } from "../terminal/table.ts";
import { wrapText } from "../terminal/wrap-text.ts";
import { accessWords } from "./access-words.ts";
import { exampleCall } from "./example-call.ts";
import { type FieldRow, fieldRows, typeText } from "./field-rows.ts";
import { sourceName } from "./run-list.ts";
import { sourceWords } from "./source-words.ts";

/** Flags of `waybill describe`. */
export interface DescribeFlags extends SourceFlags {
  readonly schema?: boolean;
  readonly json?: boolean;
}

/** Runs `waybill describe`. */
export async function runDescribe(io: Io, id: string, flags: DescribeFlags): Promise<number> {
  const session = await openSession(io, flags, { forOperation: id });
  try {
    const operation = await findOperation(io, flags, session, id);
    const source = session.gateway
      .reports()
      .find(({ name }) => name === session.gateway.sourceOf(operation.id));
    const style = createStyle(io.stdout, io.env);
    if (flags.json || flags.schema) {
      const whole = operationJson(operation, sourceName(session, operation));
      const { inputSchema, outputSchema } = whole;
      const shown = flags.schema
        ? {
            ...(inputSchema !== undefined && { inputSchema }),
            ...(outputSchema !== undefined && { outputSchema }),
          }
        : { ...whole, example: exampleCall(operation, spelledCommand(io), sourceWords(flags)) };
      const json = toSafeJson(shown, 2);
      io.stdout.write(`${io.stdout.isTTY ? paintJson(json, style) : json}\n`);
      return EXIT.ok;
    }
    const origin = source === undefined ? "" : `${source.name} (${source.kind}: ${source.target})`;
    io.stdout.write(await describeText(io, operation, origin, flags));
    return EXIT.ok;
  } finally {
    await session.close();
  }
}

async function describeText(
  io: Io,
  operation: AnyOperation,
  origin: string,
  flags: SourceFlags,
): Promise<string> {
  const style = createStyle(io.stdout, io.env);
  const { title, description, id, version, type } = operation;
  const parts = [
    `${style.bold(safeLine(id))}${title === undefined ? "" : `  ${safeLine(title)}`}`,
    wrapText(safeText(description).trim(), io.stdout),
    facts([
      ["type", type],
      ["version", version],
      ["source", origin],
      ["hints", hintsOf(operation)],
      ["access", accessOf(operation)],
      ["tier", operation.tier ?? ""],
      ["tags", (operation.tags ?? []).join(", ")],
    ]),
    await fields(io, operation, "input"),
    await fields(io, operation, "output"),
    await errors(io, operation, style),
    `${style.bold("Example")}\n  ${safeLine(exampleCall(operation, spelledCommand(io), sourceWords(flags)), 2_000)}`,
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function facts(rows: readonly (readonly [string, string])[]): string {
  return rows
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `  ${name.padEnd(9)}${safeLine(value)}`)
    .join("\n");
}

function hintsOf({ annotations = {} }: AnyOperation): string {
  const words = {
    readOnly: "read-only",
    destructive: "destructive",
    idempotent: "idempotent",
    openWorld: "open world",
  };
  return Object.entries(words)
    .filter(([name]) => annotations[name as keyof typeof annotations] === true)
    .map(([, word]) => word)
    .join(", ");
}

function accessOf({ access }: AnyOperation): string {
  return access === undefined ? "" : accessWords(access);
}

async function fields(io: Io, operation: AnyOperation, direction: "input" | "output"): Promise<string> {
  const style = createStyle(io.stdout, io.env);
  const output = operation.type === "subscription" ? "Each value" : "Output";
  const title = direction === "input" ? "Input" : output;
  const schema = schemaOf(operation, direction);
  if (schema === undefined) return `${style.bold(title)}  anything`;
  const rows = fieldRows(schema);
  const head = `${style.bold(title)}  ${safeLine(typeText(partsOf(schema, schema), schema))}`;
  if (rows.length === 0) return head;
  const table = await renderTable(
    rows.map((row) => cells(row, direction, style)),
    {
      head: ["FIELD", "TYPE", "NEEDED", "DEFAULT", "DESCRIPTION"],
      stream: io.stdout,
      env: io.env,
      indent: 2,
      wrap: true,
    },
  );
  return `${head}\n${table}`;
}

function cells(row: FieldRow, direction: "input" | "output", style: Style) {
  const { name, type, required, default: preset, description } = row;
  // An input without it is refused before defaults are filled in.
  const needed = required && direction === "input" && preset !== "" ? "yes, not filled in" : "yes";
  return [{ text: name, paint: style.cyan }, type, required ? needed : "", preset, description];
}

async function errors(io: Io, operation: AnyOperation, style: Style): Promise<string> {
  const declared = errorsOf(operation);
  if (declared.length === 0) return "";
  const rows = declared.map(({ code, description = "", httpStatus }) => [
    code,
    String(httpStatus ?? ""),
    description,
  ]);
  const table = await renderTable(rows, {
    head: ["CODE", "HTTP", "DESCRIPTION"],
    stream: io.stdout,
    env: io.env,
    indent: 2,
    wrap: true,
  });
  return `${style.bold("Errors")}\n${table}`;
}
