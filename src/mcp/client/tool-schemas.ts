import { type AnySchema, type SchemaDirection, toOperationSchema } from "../../core/schema/any-schema.ts";
import { isObject, isSchema, type JsonSchema } from "../../core/schema/json-schema.ts";
import type { ImportOptions } from "./import-options.ts";
import type { OperationFacts } from "./tool-facts.ts";
import { schemaInside } from "./unwrap-result.ts";

/** The schemas of an imported operation, and how they differ from what the tool declares. */
export interface ToolSchemas {
  /** Absent where nothing usable is declared. */
  readonly input: AnySchema | undefined;
  /** Describes the data, unwrapped. */
  readonly output: AnySchema | undefined;
  /** Whether structured content is `{ result: data }`. */
  readonly isWrapped: boolean;
  /** Whether the input is the member `input` of the arguments. */
  readonly wrapsInput: boolean;
  /** The input schema as listed. */
  readonly listedInput: Readonly<Record<string, unknown>> | undefined;
  /** What could not be taken over, one sentence each. */
  readonly notes: readonly string[];
}

/** Compiled only to be vetted: most tools are never called. */
const VETTING = { codegen: false };

/**
 * Takes over the schemas of a tool, whatever their dialect. One that is refused leaves the tool usable, because the server checks
 * its input itself; what is given up is said in a note.
 */
export function toToolSchemas(
  tool: Readonly<Record<string, unknown>>,
  name: string,
  facts: OperationFacts | undefined,
  options: ImportOptions,
): ToolSchemas {
  const notes: string[] = [];
  const inner = facts?.wrapsInput ? schemaInside(tool["inputSchema"], "input") : undefined;
  const wrapsInput = inner !== undefined;
  const declared = wrapsInput ? inner : ownInput(tool["inputSchema"], facts);
  if (tool["inputSchema"] === undefined) notes.push("It declares no inputSchema; any object is sent on.");
  const input = vetted("inputSchema", declared, "input", notes);
  const { schema, isWrapped } = chooseOutput(tool["outputSchema"], name, facts, options);
  const output = vetted("outputSchema", schema, "output", notes);
  const listed = tool["inputSchema"];
  return { input, output, isWrapped, wrapsInput, listedInput: isObject(listed) ? listed : undefined, notes };
}

/** Waybill serves an operation that declares no input with a schema for any object: MCP wants one. */
function ownInput(listed: unknown, facts: OperationFacts | undefined): unknown {
  if (facts === undefined || !isObject(listed)) return listed;
  return Object.keys(listed).join() === "type" && listed["type"] === "object" ? undefined : listed;
}

interface ChosenOutput {
  readonly schema: unknown;
  readonly isWrapped: boolean;
}

function chooseOutput(
  advertised: unknown,
  tool: string,
  facts: OperationFacts | undefined,
  { schemas, reader, unwrapResult = true }: ImportOptions,
): ChosenOutput {
  if (facts?.type === "subscription") return { schema: valueSchema(advertised), isWrapped: false };
  const inner = unwrapResult ? schemaInside(advertised, "result") : undefined;
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
    // A key of its own, so that nothing compiled outlives the vetting.
    toOperationSchema(schema as AnySchema, direction, { ...VETTING });
    return schema as AnySchema;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    notes.push(`Its ${field} is refused, and nothing is checked by it. ${reason}`);
    return undefined;
  }
}
