import type { AccessControl, ResourceRule } from "../../core/access/access.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import type { JsonSchema, JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { sampleInput } from "../../core/schema/sample-values.ts";
import { type SchemaView, viewSchema } from "../../core/schema/schema-view.ts";
import { escapeHidden, safeLine, safeText, shellWord } from "../../core/text/clean-text.ts";
import { errorsOf, operationJson, schemaOf } from "../../gateway/operation-json.ts";
import { memberPaths, valueOfText } from "../call/parse-inputs.ts";
import { EXIT, type Io } from "../io.ts";
import { sourceWords, spelledCommand } from "../pasted-command.ts";
import { findOperation, type GivenCommand } from "../session/find-operation.ts";
import { openSession, type SourceFlags } from "../session/session.ts";
import { createStyle, paintJson, type Style, toSafeJson } from "../terminal/style.ts";
import { renderTable, wrapText } from "../terminal/table.ts";
import { sourceName } from "./run-list.ts";

/** Flags of `waybill describe`. */
export interface DescribeFlags extends SourceFlags {
  readonly schema?: boolean;
  readonly json?: boolean;
  /** Milliseconds that the source has to come up. @default as long as it takes */
  readonly timeout?: number;
}

/** Runs `waybill describe`. */
export async function runDescribe(io: Io, id: string, flags: DescribeFlags): Promise<number> {
  const session = await openSession(io, flags, { forOperation: id, patienceMs: flags.timeout });
  try {
    const operation = await findOperation(session, id, { io, flags });
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
    const origin =
      source === undefined
        ? (session.gateway.sourceOf(operation.id) ?? "")
        : `${source.name} (${source.kind}: ${source.target})`;
    io.stdout.write(await describeText({ operation, origin }, { io, flags }));
    return EXIT.ok;
  } finally {
    await session.close();
  }
}

/** Characters of an example. */
const MOST_EXAMPLE = 2_000;

async function describeText(
  { operation, origin }: { readonly operation: AnyOperation; readonly origin: string },
  { io, flags }: GivenCommand,
): Promise<string> {
  const style = createStyle(io.stdout, io.env);
  const { title, description, id, version, type } = operation;
  const example = safeText(exampleCall(operation, spelledCommand(io), sourceWords(flags)));
  const parts = [
    `${style.bold(safeLine(id))}${title === undefined ? "" : `  ${safeLine(title)}`}`,
    description.trim() === title?.trim() ? "" : wrapText(safeText(description).trim(), io.stdout),
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
    `${style.bold("Example")}\n  ${example.length > MOST_EXAMPLE ? safeLine(example, MOST_EXAMPLE) : example}`,
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
  const head = `${style.bold(title)}  ${safeLine(typeText(viewSchema(schema)))}`;
  if (rows.length === 0) return head;
  const table = renderTable(
    rows.map((row) => cells(row, direction, style)),
    {
      head: ["FIELD", "TYPE", "NEEDED", "DEFAULT", "DESCRIPTION"],
      stream: io.stdout,
      env: io.env,
      indent: 2,
      whole: 1,
      wrap: true,
    },
  );
  return `${head}\n${table}`;
}

function cells(row: FieldRow, direction: "input" | "output", style: Style) {
  const { name, type, needed, default: preset, description } = row;
  // An input without it is refused before defaults are filled in.
  const isLeft = needed === "yes" && direction === "input" && preset !== "";
  return [
    { text: name, paint: style.cyan },
    type,
    isLeft ? "yes, not filled in" : needed,
    preset,
    description,
  ];
}

async function errors(io: Io, operation: AnyOperation, style: Style): Promise<string> {
  const declared = errorsOf(operation);
  if (declared.length === 0) return "";
  const rows = declared.map(({ code, description = "", httpStatus }) => [
    code,
    String(httpStatus ?? ""),
    description,
  ]);
  const table = renderTable(rows, {
    head: ["CODE", "HTTP", "DESCRIPTION"],
    stream: io.stdout,
    env: io.env,
    indent: 2,
    whole: 1,
    wrap: true,
  });
  return `${style.bold("Errors")}\n${table}`;
}

/** Says in words what the caller of an operation has to hold; nothing where it is nothing. */
function accessWords({ scopes = {}, resource = [] }: AccessControl): string {
  const { allOf = [], anyOf = [] } = scopes;
  const rules: readonly ResourceRule[] = Array.isArray(resource) ? resource : [resource as ResourceRule];
  const needs = [
    allOf.length === 0 ? "" : `the scope${allOf.length === 1 ? "" : "s"} ${listed(allOf, "and")}`,
    anyOf.length === 0 ? "" : anyWords(anyOf),
    ...rules.map(({ type, pointer }) => `the ${type} that ${fieldWords(pointer)} names`),
  ].filter((part) => part !== "");
  return needs.length === 0 ? "" : `needs ${listed(needs, "and")}`;
}

function anyWords(scopes: readonly string[]): string {
  return scopes.length === 1 ? `the scope ${scopes[0]}` : `one of the scopes ${listed(scopes, "or")}`;
}

function fieldWords(pointer: string): string {
  return pointer === "" ? "the input" : `"${pointer.slice(1).replaceAll("/", ".")}" of the input`;
}

function listed(words: readonly string[], last: "and" | "or"): string {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}

/** One field of an input or output, fit for a table. */
interface FieldRow {
  /** With dots for members and `[]` for items. */
  readonly name: string;
  readonly type: string;
  /** `depends` where only some alternatives of the schema need it. */
  readonly needed: "yes" | "depends" | "";
  readonly default: string;
  readonly description: string;
}

const MOST_ROWS = 200;
const MOST_LEVELS = 4;

/** The fields of a value that a schema describes, nested ones after what holds them. */
function fieldRows(root: JsonSchema): readonly FieldRow[] {
  const rows: FieldRow[] = [];
  const visit = (view: SchemaView, prefix: string, level: number): void => {
    const { required, requiredAlways } = view;
    for (const name of view.names) {
      if (rows.length >= MOST_ROWS) return;
      const member = view.member(name);
      const path = `${prefix}${name}`;
      rows.push(rowOf(path, member, requiredAlways.has(name) ? "yes" : required.has(name) ? "depends" : ""));
      if (level >= MOST_LEVELS) continue;
      visit(member, `${path}.`, level + 1);
      visit(member.items(), `${path}[].`, level + 1);
    }
  };
  const top = viewSchema(root);
  visit(top, "", 0);
  visit(top.items(), "[].", 0);
  return rows;
}

function rowOf(name: string, view: SchemaView, needed: FieldRow["needed"]): FieldRow {
  const defaulted = view.parts.find((part) => Object.hasOwn(part, "default"));
  return {
    name,
    type: typeText(view),
    needed,
    default: defaulted === undefined ? "" : toSafeJson(defaulted["default"]),
    description: view.text("description") ?? "",
  };
}

/** Words for what values a schema takes. */
function typeText(view: SchemaView): string {
  const { types, values } = view;
  if (values.length > 0) {
    const shown = values.slice(0, 8).map((value) => (typeof value === "string" ? value : toSafeJson(value)));
    return shown.join(" | ") + (values.length > 8 ? " | …" : "");
  }
  return types.size === 0 ? "any" : [...types].map((type) => oneType(type, view)).join(" | ");
}

/** A bound that somebody chose: schema libraries write those of exact integers by themselves, which bound nothing. */
function chosenBound(view: SchemaView, word: "minimum" | "maximum"): number | undefined {
  const bound = view.number(word);
  return bound === undefined || Math.abs(bound) === Number.MAX_SAFE_INTEGER ? undefined : bound;
}

function oneType(type: string, view: SchemaView): string {
  if (type === "array") {
    const items = view.items();
    return items.parts.length === 0 ? "array" : `${[...items.types].join("|") || "any"}[]`;
  }
  const format = view.text("format");
  if (type === "string") return format === undefined ? type : `string (${format})`;
  if (type !== "number" && type !== "integer") return type;
  const [least, most] = [chosenBound(view, "minimum"), chosenBound(view, "maximum")];
  if (least !== undefined && most !== undefined) return `${type} ${least}–${most}`;
  return least !== undefined ? `${type} ≥ ${least}` : most !== undefined ? `${type} ≤ ${most}` : type;
}

/** A command line that calls an operation with an input its schema takes; `command` is how Waybill is started. */
function exampleCall(operation: AnyOperation, command = "waybill", flags = ""): string {
  const schema = schemaOf(operation, "input");
  const input = schema === undefined ? undefined : sampleInput(toOperationSchema(schema, "input")).value;
  const words = input === undefined || schema === undefined ? [] : inputWords(input, schema);
  return [command, "call", shellWord(operation.id), ...words, ...(flags === "" ? [] : [flags])].join(" ");
}

function inputWords(input: unknown, schema: JsonSchemaObject): readonly string[] {
  if (!isPlainObject(input)) return [jsonWord("", input)];
  const entries = Object.entries(input);
  const root = viewSchema(schema);
  const words = entries.flatMap(
    ([key, value]): readonly (string | undefined)[] =>
      innerWords(key, value, schema) ?? [memberWord(key, value, root.member(key))],
  );
  if (words.includes(undefined)) return [jsonWord("", input)];
  return words as string[];
}

/** The members of an object by themselves, such as `title=text` for `body`, where each is read back as that very member; else nothing. */
function innerWords(key: string, value: unknown, schema: JsonSchemaObject): readonly string[] | undefined {
  const members = isPlainObject(value) ? Object.entries(value) : [];
  const holder = viewSchema(schema).member(key);
  const words = members.map(([name, inner]) => memberWord(name, inner, holder.member(name)));
  if (words.length === 0 || words.includes(undefined)) return undefined;
  const paths = memberPaths(
    members.map(([name]) => `${name}=`),
    schema,
  );
  const isTheirs = paths.every(
    (path, at) => path.length === 2 && path[0] === key && path[1] === members[at]?.[0],
  );
  return isTheirs ? (words as string[]) : undefined;
}

/** `key=value` where that is read back as the value, else `key:=json`; nothing for a key that cannot be written so. */
function memberWord(key: string, value: unknown, view: SchemaView): string | undefined {
  if (/[=@:.\s"'{[]/.test(key) || key === "" || key.startsWith("-") || safeText(key) !== key)
    return undefined;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const isPlain =
    typeof value !== "object" && !text.startsWith("@") && !text.includes("\n") && safeText(text) === text;
  if (isPlain && valueOfText(text, view, key) === value) return shellWord(`${key}=${text}`);
  return jsonWord(`${key}:=`, value);
}

/** JSON in which nothing hides, and nothing that would be taken out of it. */
function jsonWord(start: string, value: unknown): string {
  return shellWord(`${start}${escapeHidden(JSON.stringify(value))}`);
}
