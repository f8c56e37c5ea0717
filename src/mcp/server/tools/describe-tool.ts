import { isPlainObject } from "../../../core/json/json-value.ts";
import type { AnyOperation, ErrorDeclaration } from "../../../core/operation/operation-types.ts";
import type { ResultFormat } from "../../../core/result/result-reader.ts";
import {
  type AnySchema,
  type OperationSchema,
  type SchemaDirection,
  toOperationSchema,
} from "../../../core/schema/any-schema.ts";
import type { JsonSchema, JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { rewriteSchema } from "../../../core/schema/rewrite-schema.ts";
import { cleanText, findHidden } from "../../../core/text/clean-text.ts";
import { OPERATION_META_KEY, TOOL_META_KEY } from "../../names.ts";
import type { Era } from "../../protocol/revisions.ts";
import { withProviderUi } from "../resources/resource-directory.ts";
import type { TaskSupport } from "../tasks/task-calls.ts";
import {
  moveSchema,
  type ServedInput,
  toModernSchema,
  toNaturalOutput,
  toServedInput,
  toServedOutput,
} from "./served-schema.ts";

/** A tool as `tools/list` shows it. */
export interface DescribedTool {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: JsonSchemaObject;
  readonly outputSchema?: JsonSchemaObject;
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly icons?: unknown;
  readonly execution?: Readonly<Record<string, unknown>>;
  readonly _meta: Readonly<Record<string, unknown>>;
}

const inputs = new WeakMap<AnyOperation, ServedInput>();
const outputs = new WeakMap<AnyOperation, Map<ResultFormat, JsonSchemaObject | undefined>>();

/** How the input of an operation is served; worked out once. */
export function inputOf(operation: AnyOperation): ServedInput {
  const input = inputs.get(operation) ?? readInput(operation);
  inputs.set(operation, input);
  return input;
}

/** What a format says of the results of an operation, before any wrapping; worked out once. */
export function outputOf(operation: AnyOperation, format: ResultFormat): JsonSchemaObject | undefined {
  const byFormat = outputs.get(operation) ?? new Map<ResultFormat, JsonSchemaObject | undefined>();
  outputs.set(operation, byFormat);
  if (!byFormat.has(format)) byFormat.set(format, toNaturalOutput(formatSchema(operation, format)));
  return byFormat.get(format);
}

function readInput(operation: AnyOperation): ServedInput {
  const compiled = usable(() => operation.inputSchema, "input");
  return toServedInput(compiled?.meaningful ? compiled.json : undefined);
}

/** A schema, compiled; nothing where there is none, or it is refused: calls are told so, and no other tool suffers from it. */
function usable(
  read: () => AnySchema | undefined,
  direction: SchemaDirection,
  onRefused?: (cause: unknown) => void,
): OperationSchema | undefined {
  try {
    const schema = read();
    return schema === undefined ? undefined : toOperationSchema(schema, direction);
  } catch (cause) {
    onRefused?.(cause);
    return undefined;
  }
}

/** What describing tools depends on besides the operations. */
export interface ToolTableOptions {
  /** Hears of schemas that are refused, of which a tool says nothing. @default nobody does */
  readonly warn?: ((message: string, cause: unknown) => void) | undefined;
  /** Tells whether the resources of an imported server are served too, by its namespace. @default none are */
  readonly isProvided?: ((namespace: string) => boolean) | undefined;
  /** Whether calls of an operation may be tasks. @default they may not */
  readonly taskSupportOf?: ((operationId: string) => TaskSupport) | undefined;
}

interface ToolDescription extends ToolTableOptions {
  readonly name: string;
  readonly era: Era;
  readonly format: ResultFormat;
}

/** Describes an operation as a tool. */
export function describeTool(
  operation: AnyOperation,
  { name, era, format, warn = () => {}, isProvided = () => false, taskSupportOf }: ToolDescription,
): DescribedTool {
  const { title, description } = operation;
  warnOfRefused(operation, warn);
  const input = inputOf(operation);
  const outputSchema = toServedOutput(formatSchema(operation, format), era);
  const natural = outputOf(operation, format);
  const wrapsResult = era === "legacy" && natural !== undefined && natural["type"] !== "object";
  const imported = importedPartOf(operation);
  const facts = factsOf(operation, { wrapsInput: input.wrapped, wrapsResult });
  const annotations = annotationsOf(operation, imported["annotations"]);
  // Since 2026-07-28 nobody is told: the server decides.
  const taskSupport = era === "legacy" ? taskSupportOf?.(operation.id) : undefined;
  const execution = executionOf(imported["execution"], taskSupport);
  const source = importedFrom(operation);
  const foreign = foreignMeta(imported["_meta"]);
  const meta =
    source !== undefined && isProvided(source) ? withProviderUi(foreign, { namespace: source }) : foreign;
  return {
    name,
    ...(title !== undefined && { title: cleanText(title).text }),
    description: cleanText(description).text,
    inputSchema: toShownSchema(input.schema),
    ...(outputSchema !== undefined && { outputSchema: toShownSchema(outputSchema) }),
    ...(annotations !== undefined && { annotations }),
    ...(Array.isArray(imported["icons"]) && { icons: imported["icons"] }),
    ...(execution !== undefined && { execution }),
    _meta: { ...meta, [OPERATION_META_KEY]: facts },
  };
}

/** What of a schema is for models and people, and nothing that a value has to match. */
const SCHEMA_TEXTS = ["title", "description", "$comment"];

/** The schema without what hides in its titles and descriptions; the same one where nothing does. */
export function toShownSchema(schema: JsonSchemaObject): JsonSchemaObject {
  if (findHidden(schema).length === 0) return schema;
  return rewriteSchema(schema, {
    keywords: (part) => {
      const texts = SCHEMA_TEXTS.filter((key) => typeof part[key] === "string");
      const cleaned = texts.map((key) => [key, cleanText(String(part[key])).text] as const);
      return { ...part, ...Object.fromEntries(cleaned) };
    },
  });
}

function warnOfRefused(operation: AnyOperation, warn: NonNullable<ToolDescription["warn"]>): void {
  const { id } = operation;
  const tell =
    (what: string, instead: string) =>
    (cause: unknown): void =>
      warn(`${what} of "${id}" is refused; ${instead}.`, cause);
  usable(
    () => operation.inputSchema,
    "input",
    tell("The input schema", "its tool is listed as if it took anything"),
  );
  usable(() => operation.outputSchema, "output", tell("The output schema", "its tool is listed without one"));
  for (const { code, schema } of declaredErrors(operation)) {
    usable(() => schema, "output", tell(`The schema of the error ${code}`, "its tool is listed without it"));
  }
}

/** Leaves out what only Waybill itself, or the SDK for this very server, may say. */
export function foreignMeta(meta: unknown): Record<string, unknown> {
  if (!isPlainObject(meta)) return {};
  const isForeign = ([key]: [string, unknown]): boolean =>
    !key.startsWith("dev.waybill/") && !key.startsWith("io.modelcontextprotocol/");
  return Object.fromEntries(Object.entries(meta).filter(isForeign));
}

function formatSchema(operation: AnyOperation, format: ResultFormat): JsonSchema | undefined {
  const { type } = operation;
  try {
    // A subscription ends with one result about all its values, which the format writes like any other.
    return format.outputSchema(
      type === "subscription" ? { ...operation, outputSchema: streamSchema(operation) } : operation,
    );
  } catch {
    return undefined;
  }
}

/** The namespace of the server that an operation was imported from; nothing for any other operation. */
export function importedFrom(operation: AnyOperation): string | undefined {
  const { source } = importedPartOf(operation);
  return typeof source === "string" && source !== "" ? source : undefined;
}

/** Tells whether an imported tool is for the pages of its server alone, and not for models (`_meta.ui.visibility`). */
export function isForPagesAlone(operation: AnyOperation): boolean {
  const { _meta: meta } = importedPartOf(operation);
  const ui = isPlainObject(meta) ? meta["ui"] : undefined;
  const visibility = isPlainObject(ui) ? ui["visibility"] : undefined;
  return Array.isArray(visibility) && visibility.includes("app") && !visibility.includes("model");
}

/** How a tool runs; whether its calls are tasks here is not for the server that it was imported from to say. */
function executionOf(
  imported: unknown,
  taskSupport: TaskSupport = "forbidden",
): Record<string, unknown> | undefined {
  const { taskSupport: _, ...rest } = isPlainObject(imported) ? imported : {};
  if (taskSupport !== "forbidden") return { ...rest, taskSupport };
  return Object.keys(rest).length === 0 ? undefined : rest;
}

function importedPartOf(operation: AnyOperation): Readonly<Record<string, unknown>> {
  const part = operation._meta?.[TOOL_META_KEY];
  return isPlainObject(part) ? part : {};
}

/** An imported tool's other title is for people too. */
function annotationsOf(
  { type, annotations }: AnyOperation,
  imported: unknown,
): Record<string, unknown> | undefined {
  const title = isPlainObject(imported) ? imported["title"] : undefined;
  const hints = {
    title: typeof title === "string" ? cleanText(title).text : undefined,
    readOnlyHint: annotations?.readOnly ?? (type === "mutation" ? undefined : true),
    destructiveHint: annotations?.destructive,
    idempotentHint: annotations?.idempotent,
    openWorldHint: annotations?.openWorld,
  };
  const said = Object.entries(hints).filter(([, hint]) => hint !== undefined);
  return said.length === 0 ? undefined : Object.fromEntries(said);
}

interface Wrapping {
  readonly wrapsInput: boolean;
  readonly wrapsResult: boolean;
}

/** What a tool cannot say of its operation, and what was declared where the tool looks the same either way. */
function factsOf(operation: AnyOperation, { wrapsInput, wrapsResult }: Wrapping): Record<string, unknown> {
  const { id, type, version, tags, tier, features, annotations } = operation;
  const errors = errorFacts(operation);
  return {
    id,
    type,
    version,
    ...(tags !== undefined && tags.length > 0 && { tags }),
    ...(errors.length > 0 && { errors }),
    ...(tier !== undefined && { tier }),
    ...(features !== undefined && features.length > 0 && { features }),
    ...(wrapsInput && { wrapsInput }),
    ...(wrapsResult && { wrapsResult }),
    ...(takesAnything(operation) && { takesAnything: true }),
    ...(type !== "mutation" && annotations?.readOnly === true && { declaresReadOnly: true }),
  };
}

function errorFacts(operation: AnyOperation): readonly Record<string, unknown>[] {
  return declaredErrors(operation).map(({ code, description, schema, httpStatus }) => {
    const json = usable(() => schema, "output")?.json;
    return {
      code,
      ...(description !== undefined && { description }),
      ...(json !== undefined && { schema: json }),
      ...(httpStatus !== undefined && { httpStatus }),
    };
  });
}

/** What is declared may be read when it is asked for first, which can fail. */
function declaredErrors(operation: AnyOperation): readonly ErrorDeclaration[] {
  try {
    const { errors = [] } = operation;
    return Array.isArray(errors)
      ? errors
      : Object.entries(errors).map(([code, rest]) => ({ ...(rest as Omit<ErrorDeclaration, "code">), code }));
  } catch {
    return [];
  }
}

function takesAnything(operation: AnyOperation): boolean {
  try {
    return operation.inputSchema === undefined;
  } catch {
    return true;
  }
}

/** What the one result of a subscription says: its first values, and how many there were. */
export interface StreamResult {
  readonly items: readonly unknown[];
  readonly count: number;
  /** Whether there were more values than `items` holds. */
  readonly truncated: boolean;
}

const prepared = new WeakMap<AnyOperation, JsonSchemaObject>();

/** The schema of the result of a subscription, around that of its values. */
export function streamSchema(operation: AnyOperation): JsonSchemaObject {
  const known = prepared.get(operation) ?? makeSchema(operation);
  prepared.set(operation, known);
  return known;
}

function makeSchema({ outputSchema }: AnyOperation): JsonSchemaObject {
  const compiled = outputSchema === undefined ? undefined : toOperationSchema(outputSchema, "output");
  const json = compiled?.meaningful ? compiled.json : true;
  const items =
    typeof json === "boolean" ? json : moveSchema(toModernSchema(json), "#/properties/items/items");
  return {
    type: "object",
    properties: {
      items: { type: "array", items },
      count: { type: "integer", minimum: 0 },
      truncated: { type: "boolean" },
    },
    required: ["items", "count", "truncated"],
  };
}
