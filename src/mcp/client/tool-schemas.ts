import { type AnySchema, type SchemaDirection, toOperationSchema } from "../../core/schema/any-schema.ts";
import { isObject, isSchema, type JsonSchema } from "../../core/schema/json-schema.ts";
import type { WrapsInput } from "./call-tool.ts";
import type { ImportOptions } from "./import-options.ts";
import type { OperationFacts, ServedFacts } from "./tool-facts.ts";
import { schemaInside } from "./unwrap-result.ts";

/** The schemas of an imported operation, and how they differ from what the tool declares. */
export interface ToolSchemas {
  /** Absent where nothing usable is declared. */
  readonly input: AnySchema | undefined;
  /** Describes the data, unwrapped. */
  readonly output: AnySchema | undefined;
  /** The output schema as listed. */
  readonly announced: AnySchema | undefined;
  /** Whether structured content is `{ result: data }`. */
  readonly isWrapped: boolean;
  /** Whether a result may say that of itself, because no schema tells. */
  readonly mayWrap: boolean;
  /** Whether Waybill serves the tool. */
  readonly isServed: boolean;
  /** When the input is the member `input` of the arguments. */
  readonly wrapsInput: WrapsInput;
  /** The input schema as listed. */
  readonly listedInput: Readonly<Record<string, unknown>> | undefined;
  /** What could not be taken over, one sentence each. */
  readonly notes: readonly string[];
}

/** What the schemas of a tool depend on besides the tool. */
export interface SchemaSetting {
  /** Its exact name. */
  readonly name: string;
  /** Of the operation behind it, where its id is kept. */
  readonly facts: OperationFacts | undefined;
  /** How Waybill serves it, where Waybill does, whether ids are kept or not. */
  readonly served: ServedFacts | undefined;
  readonly options: ImportOptions;
}

/**
 * Takes over the schemas of a tool, whatever their dialect. One that is refused leaves the tool usable, because the server checks
 * its input itself; what is given up is said in a note.
 */
export function toToolSchemas(tool: Readonly<Record<string, unknown>>, setting: SchemaSetting): ToolSchemas {
  const notes: string[] = [];
  const { facts, served, options } = setting;
  const inner = facts?.served.wrapsInput ? schemaInside(tool["inputSchema"], "input") : undefined;
  const takesAnything = facts?.served.takesAnything === true && isAnyObject(tool["inputSchema"]);
  const declared = takesAnything ? undefined : (inner ?? tool["inputSchema"]);
  const wrapsInput = takesAnything ? "unless-object" : inner !== undefined;
  if (tool["inputSchema"] === undefined) notes.push("It declares no inputSchema; any object is sent on.");
  const input = vetted("inputSchema", declared, "input", notes);
  const { schema, isWrapped } = chooseOutput(tool["outputSchema"], setting);
  const output = vetted("outputSchema", schema, "output", notes);
  const listed = tool["inputSchema"];
  const listedInput = isObject(listed) ? listed : undefined;
  const isServed = served !== undefined;
  const mayWrap = isServed && tool["outputSchema"] === undefined && options.unwrapResult !== false;
  const announced = isSchema(tool["outputSchema"]) ? tool["outputSchema"] : undefined;
  return { input, output, announced, isWrapped, mayWrap, isServed, wrapsInput, listedInput, notes };
}

/** Waybill serves an operation that declares no input with a schema for any object: MCP wants one. */
function isAnyObject(listed: unknown): boolean {
  return isObject(listed) && Object.keys(listed).join() === "type" && listed["type"] === "object";
}

interface ChosenOutput {
  readonly schema: unknown;
  readonly isWrapped: boolean;
}

function chooseOutput(
  advertised: unknown,
  { name: tool, facts, served, options }: SchemaSetting,
): ChosenOutput {
  const { schemas, reader, unwrapResult = true } = options;
  if (facts?.type === "subscription") return { schema: valueSchema(advertised), isWrapped: false };
  // Waybill says where it wrapped; what else looks like a wrapper is the operation's own then.
  const mayUnwrap = unwrapResult && (served === undefined || served.wrapsResult);
  const inner = mayUnwrap ? schemaInside(advertised, "result") : undefined;
  const isWrapped = inner !== undefined;
  const supplied = schemas !== undefined && Object.hasOwn(schemas, tool) ? schemas[tool] : undefined;
  if (supplied !== undefined) return { schema: supplied, isWrapped };
  const own = isWrapped ? inner : advertised;
  return { schema: isSchema(own) ? dataSchema(own, reader) : own, isWrapped };
}

function dataSchema(schema: JsonSchema, reader: ImportOptions["reader"]): JsonSchema {
  return reader?.dataSchema?.(schema) ?? schema;
}

/** The final result of a subscription lists its values: their schema is that of each. */
function valueSchema(advertised: unknown): unknown {
  const properties = isObject(advertised) ? advertised["properties"] : undefined;
  const items = isObject(properties) ? properties["items"] : undefined;
  const values = isObject(items) ? items["items"] : undefined;
  // It says nothing of values nothing is known of.
  return values === true ? undefined : values;
}

function vetted(
  field: string,
  schema: unknown,
  direction: SchemaDirection,
  notes: string[],
): AnySchema | undefined {
  if (schema === undefined) return undefined;
  try {
    // Whoever registers the tool finds it compiled.
    toOperationSchema(schema as AnySchema, direction);
    return schema as AnySchema;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    notes.push(`Its ${field} is refused, and nothing is checked by it. ${reason}`);
    return undefined;
  }
}
