import { isPlainObject } from "../../core/json/json-value.ts";
import { type CompiledSchema, compileSchema } from "../../core/schema/compile-schema.ts";
import { describeFindings, findHidden } from "../../core/text/clean-text.ts";
import { counted } from "../../core/text/nearest-name.ts";
import { OPERATION_META_KEY } from "../../mcp/names.ts";
import type { CheckList } from "./check-report.ts";

/** A tool as it was listed, and what could be made of it. */
export interface ListedTool {
  readonly name: string;
  readonly definition: Readonly<Record<string, unknown>>;
  /** Absent where it cannot be used. */
  readonly input: CompiledSchema | undefined;
  readonly output: CompiledSchema | undefined;
  readonly isReadOnly: boolean;
  /** It gives values for as long as it is called, as progress: a subscription that Waybill serves. */
  readonly isStream: boolean;
}

const NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** Checks what tools say of themselves; gives those that can be called. */
export function checkTools(list: CheckList, entries: readonly unknown[]): readonly ListedTool[] {
  const tools = new Map<string, ListedTool>();
  const repeated = new Set<string>();
  entries.forEach((entry, at) => {
    if (!isPlainObject(entry) || typeof entry["name"] !== "string") {
      list.fail("mcp.list", "", `Entry ${at + 1} of the list is no tool with a name.`, { evidence: entry });
      return;
    }
    const name = entry["name"];
    if (tools.has(name)) repeated.add(name);
    else tools.set(name, checkTool(list, name, entry));
  });
  for (const name of repeated) {
    list.fail("mcp.list.unique", name, "More than one tool has this name; clients see one of them.");
  }
  if (repeated.size === 0 && tools.size > 0) {
    list.pass("mcp.list.unique", "", `${counted(tools.size, "tool")}, each with a name of its own.`);
  }
  return [...tools.values()];
}

function checkTool(list: CheckList, name: string, definition: Readonly<Record<string, unknown>>): ListedTool {
  if (NAME.test(name)) list.pass("mcp.tool.name", name, "The name can be used everywhere.");
  else list.fail("mcp.tool.name", name, nameFault(name));
  checkDescription(list, name, definition["description"]);
  checkHidden(list, name, definition);
  const isReadOnly = checkAnnotations(list, name, definition["annotations"]);
  return {
    name,
    definition,
    input: checkInputSchema(list, name, definition["inputSchema"]),
    output: checkOutputSchema(list, name, definition["outputSchema"]),
    isReadOnly,
    isStream: isStream(definition["_meta"]),
  };
}

function isStream(meta: unknown): boolean {
  const facts = isPlainObject(meta) ? meta[OPERATION_META_KEY] : undefined;
  return isPlainObject(facts) && facts["type"] === "subscription";
}

function nameFault(name: string): string {
  if (name === "") return "The name is empty.";
  if (name.length > 128) return `The name has ${name.length} characters; 128 are allowed.`;
  return "The name has characters that many clients refuse.";
}

function checkDescription(list: CheckList, name: string, description: unknown): void {
  if (typeof description === "string" && description.trim() !== "") {
    list.pass("mcp.tool.description", name, "There is a description.");
  } else list.warn("mcp.tool.description", name, "There is no description.");
}

const SEEN = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"] as const;

function checkHidden(list: CheckList, name: string, definition: Readonly<Record<string, unknown>>): void {
  const findings = findHidden(SEEN.map((field) => definition[field]));
  if (findings.length === 0) list.pass("mcp.tool.hidden", name, "Nothing hides in the definition.");
  else {
    const message = `Characters that people do not see stand in the definition: ${describeFindings(findings)}.`;
    list.fail("mcp.tool.hidden", name, message);
  }
}

const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;

/** Tells whether the tool says that it only reads. */
function checkAnnotations(list: CheckList, name: string, annotations: unknown): boolean {
  if (annotations === undefined) return false;
  const hints = isPlainObject(annotations) ? annotations : {};
  const odd = HINTS.filter((hint) => hints[hint] !== undefined && typeof hints[hint] !== "boolean");
  const { readOnlyHint, destructiveHint } = hints;
  if (!isPlainObject(annotations)) list.fail("mcp.tool.annotations", name, "annotations is no object.");
  else if (odd.length > 0) {
    list.fail("mcp.tool.annotations", name, `${odd.join(" and ")} must be true or false.`, {
      evidence: hints,
    });
  } else if (readOnlyHint === true && destructiveHint === true) {
    list.fail("mcp.tool.annotations", name, "It says that it only reads, and that it destroys.");
  } else list.pass("mcp.tool.annotations", name, "The annotations agree with each other.");
  return readOnlyHint === true && destructiveHint !== true;
}

function checkInputSchema(list: CheckList, name: string, schema: unknown): CompiledSchema | undefined {
  const id = "mcp.tool.input-schema";
  if (!isPlainObject(schema)) {
    list.fail(id, name, schema === undefined ? "There is no inputSchema." : "The inputSchema is no object.");
    return undefined;
  }
  const compiled = tryCompile(schema);
  if ("reason" in compiled) {
    list.fail(id, name, `The inputSchema cannot be used. ${compiled.reason}`);
    return undefined;
  }
  if (schema["type"] === "object") list.pass(id, name, "The inputSchema can be used.");
  else list.fail(id, name, 'The inputSchema does not say "type": "object".', { evidence: schema["type"] });
  return compiled.schema;
}

function checkOutputSchema(list: CheckList, name: string, schema: unknown): CompiledSchema | undefined {
  if (schema === undefined) return undefined;
  const compiled = tryCompile(schema);
  if ("schema" in compiled) {
    list.pass("mcp.tool.output-schema", name, "The outputSchema can be used.");
    return compiled.schema;
  }
  list.fail("mcp.tool.output-schema", name, `The outputSchema cannot be used. ${compiled.reason}`);
  return undefined;
}

/** A schema ready to check values, or why it is none. */
export function tryCompile(
  schema: unknown,
): { readonly schema: CompiledSchema } | { readonly reason: string } {
  try {
    return { schema: compileSchema(schema) };
  } catch (thrown) {
    return { reason: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}
