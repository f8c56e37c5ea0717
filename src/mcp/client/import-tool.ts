import { isErrorCode } from "../../core/errors/error-codes.ts";
import {
  canonicalJson,
  isPlainObject,
  type JsonValue,
  toJsonTextOrNone,
} from "../../core/json/json-value.ts";
import { defineOperation } from "../../core/operation/operation.ts";
import type {
  AnyOperation,
  ErrorDeclaration,
  OperationAnnotations,
} from "../../core/operation/operation-types.ts";
import { isSemanticVersion } from "../../core/operation/semantic-version.ts";
import { type EntrySettings, OperationEntry } from "../../core/registry/operation-entry.ts";
import { type AnySchema, type SchemaDirection, toOperationSchema } from "../../core/schema/any-schema.ts";
import {
  forEachSubschema,
  isObject,
  isSchema,
  type JsonSchema,
  type JsonSchemaObject,
} from "../../core/schema/json-schema.ts";
import type { SourceSecrets } from "../../core/secrets/secret-mask.ts";
import { cleanText, describeFindings, findHidden, type TextFinding } from "../../core/text/clean-text.ts";
import { OPERATION_META_KEY, TOOL_META_KEY, toOperationName } from "../names.ts";
import type { WrapsInput } from "./call-tool.ts";
import type { ImportLimits, ImportOptions } from "./import-options.ts";
import { type DefinitionChange, type ToolDefinition, toDefinition } from "./lock/tool-lock.ts";
import type { ToolPin } from "./lock/tool-pin.ts";
import { toPlainLine } from "./plain-line.ts";
import {
  type OperationFacts,
  type ResultReading,
  readOperationFacts,
  type ServedFacts,
  schemaInside,
} from "./read-tool-result.ts";

/** A tool ready to be called. */
export interface ImportedTool {
  /** Its exact name. */
  readonly name: string;
  readonly operation: AnyOperation;
  readonly plan: ToolPlan;
  /** What a pin looks at: as the server says it now. */
  readonly definition: ToolDefinition;
  /** Why a pin refuses it; nothing where it is as approved, or nothing is pinned. One that changed is an operation as it was approved. */
  readonly change: DefinitionChange | undefined;
  /** All the server says of it and what was approved in its place, so that changes show. */
  readonly fingerprint: string;
  /** What could not be taken over, one sentence each. */
  readonly notes: readonly string[];
}

/** What a handler needs to know of its tool. */
export interface ToolPlan {
  readonly name: string;
  readonly inputSchema: Readonly<Record<string, unknown>> | undefined;
  readonly wrapsInput: WrapsInput;
  readonly reading: ResultReading;
  /** As the server says it now, whatever the operation shows. */
  readonly definition: ToolDefinition;
  readonly streams: boolean;
  /** Whether its server, of 2025-11-25, wants calls of it to be tasks, or takes them. @default it takes none */
  readonly taskSupport: "required" | "optional" | undefined;
}

/** What importing a tool depends on besides the tool. */
export interface ToolImport {
  readonly options: ImportOptions;
  readonly limits: ImportLimits;
  /** That of the server, where it is a semantic version. */
  readonly version: unknown;
  /** Whether arguments go along in headers, as the tool's `x-mcp-header` members say; these have to be right then. @default false */
  readonly mirrorsParams?: boolean | undefined;
  /** What was approved. @default nothing is pinned */
  readonly pin?: ToolPin | undefined;
  /** Tools imported before, by name: one that is the same stays the same. @default none */
  readonly known?: ReadonlyMap<string, ImportedTool> | undefined;
  /** Ends the import of a list. @default nothing does */
  readonly signal?: AbortSignal | undefined;
  /** What of the server's words is passed on. @default all of them, and nothing is secret */
  readonly secrets?: SourceSecrets | undefined;
  handlerFor(plan: ToolPlan): AnyOperation["handler"];
}

/** Why a tool cannot be used; a `TypeError`, because nothing about calls has gone wrong yet. */
class ToolRefusal extends TypeError {
  override readonly name = "ToolRefusal";
}

/** Nested objects and arrays of a definition; a lock file adds some of its own. */
const DEFINITION_DEPTH = 256;

/** Makes an operation of a tool as listed; throws an `ToolRefusal` with the reason when that cannot be. */
export function importTool(tool: unknown, importing: ToolImport): ImportedTool {
  const { options, limits } = importing;
  if (!isPlainObject(tool)) throw new ToolRefusal("It is no object.");
  const { name } = tool;
  if (typeof name !== "string" || name === "") throw new ToolRefusal("It has no name.");
  assertSize(tool, limits.definitionBytes);
  const fault = importing.mirrorsParams === true ? findHeaderFault(tool["inputSchema"]) : undefined;
  if (fault !== undefined) throw new ToolRefusal(fault);
  const isKept = options.keepIds === true && readOperationFacts(tool["_meta"]) !== undefined;
  const definition = toDefinition(tool, isKept ? factsOf(tool) : undefined);
  const change = importing.pin?.changeOf(definition);
  const approved = change?.kind === "changed" ? importing.pin?.approvedOf(name) : undefined;
  const fingerprint = `${change?.kind ?? ""} ${approved?.hash ?? ""} ${fingerprintOf(tool, importing)}`;
  const known = importing.known?.get(name);
  if (known?.fingerprint === fingerprint) return known;
  const listed = approved === undefined ? tool : asApproved(approved.definition, tool, options);
  return {
    name,
    definition,
    change,
    fingerprint,
    ...importListed({ tool: listed, name, definition }, importing),
  };
}

/** A tool as callers see it. */
interface SeenTool {
  readonly tool: Readonly<Record<string, unknown>>;
  readonly name: string;
  /** What the tool is now. */
  readonly definition: ToolDefinition;
}

/** Makes the operation of a tool. */
function importListed(
  seen: SeenTool,
  importing: ToolImport,
): Pick<ImportedTool, "operation" | "plan" | "notes"> {
  const { tool, name } = seen;
  const { options } = importing;
  const told = readOperationFacts(tool["_meta"]);
  const facts = options.keepIds === true ? told : undefined;
  const schemas = toToolSchemas(tool, { name, facts, served: told?.served, options });
  const shown = cleanTexts(tool);
  const errors = facts === undefined ? toldErrors(told) : facts.errors;
  const plan = toPlan(seen, { schemas, facts, errors }, importing);
  const operation = toImported(tool, { facts, errors, schemas, shown, importing, plan });
  return { operation, plan, notes: [...schemas.notes, ...shown.notes] };
}

/** The errors that a tool says its operation declares, where its server is not trusted: without codes of the table, which keep their meaning, and without schemas. */
function toldErrors(told: OperationFacts | undefined): readonly ErrorDeclaration[] | undefined {
  const errors = told?.errors
    ?.filter(({ code }) => !isErrorCode(code))
    .map(({ schema: _, ...declared }) => declared);
  return errors?.length === 0 ? undefined : errors;
}

/** A tool as it was approved. How Waybill serves it is no part of that where ids are not kept, and is taken from what it is now. */
function asApproved(
  { operation, ...approved }: ToolDefinition,
  now: Readonly<Record<string, unknown>>,
  { keepIds }: ImportOptions,
): Readonly<Record<string, unknown>> {
  const facts = keepIds === true ? operation : isPlainObject(now["_meta"]) && factsOf(now);
  return isPlainObject(facts) ? { ...approved, _meta: { [OPERATION_META_KEY]: facts } } : approved;
}

function assertSize(tool: Record<string, unknown>, limit: number): void {
  if (isDeeper(tool, DEFINITION_DEPTH)) {
    throw new ToolRefusal(`Its definition is nested more than ${DEFINITION_DEPTH} levels deep.`);
  }
  const text = toJsonTextOrNone(tool);
  if (text === undefined) throw new ToolRefusal("Its definition is no JSON.");
  if (text.length > limit || Buffer.byteLength(text) > limit) {
    throw new ToolRefusal(`Its definition is larger than ${limit} bytes.`);
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}

function factsOf(tool: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return (tool["_meta"] as Record<string, Record<string, unknown>>)[OPERATION_META_KEY] ?? {};
}

function fingerprintOf(tool: Record<string, unknown>, { version }: ToolImport): string {
  return `${String(version)} ${canonicalJson(tool as JsonValue)}`;
}

function toPlan(
  { tool, name, definition }: SeenTool,
  { schemas, facts, errors }: Pick<Material, "schemas" | "facts" | "errors">,
  { options: { reader, recoverJson, keepIds: isTrusted }, secrets }: ToolImport,
): ToolPlan {
  const declared = new Set(errors?.map(({ code }) => code));
  const { output: schema, isWrapped: wrapped, announced, mayWrap, isServed } = schemas;
  return {
    name,
    inputSchema: schemas.listedInput,
    wrapsInput: schemas.wrapsInput,
    reading: {
      tool: name,
      reader,
      recoverJson,
      schema,
      wrapped,
      announced,
      mayWrap,
      isServed,
      isTrusted,
      declared,
      secrets,
    },
    definition,
    streams: facts?.type === "subscription",
    taskSupport: taskSupportOf(tool["execution"]),
  };
}

function taskSupportOf(execution: unknown): ToolPlan["taskSupport"] {
  const support = isPlainObject(execution) ? execution["taskSupport"] : undefined;
  return support === "required" || support === "optional" ? support : undefined;
}

interface Material {
  readonly facts: OperationFacts | undefined;
  readonly errors: readonly ErrorDeclaration[] | undefined;
  readonly schemas: ToolSchemas;
  readonly shown: ToolTexts;
  readonly importing: ToolImport;
  readonly plan: ToolPlan;
}

function toImported(tool: Readonly<Record<string, unknown>>, material: Material): AnyOperation {
  const { facts, errors, schemas, shown, importing, plan } = material;
  const { options } = importing;
  const { input, output } = schemas;
  const annotations = ownAnnotations(toAnnotations(tool["annotations"]), facts);
  const { served: _, ...kept } = facts ?? placeOf(plan.name, annotations, importing);
  try {
    const operation: AnyOperation = defineOperation({
      ...kept,
      ...(errors !== undefined && { errors }),
      ...(shown.title !== undefined && { title: shown.title }),
      description: shown.description,
      ...(input !== undefined && { inputSchema: input }),
      ...(output !== undefined && { outputSchema: output }),
      ...(annotations && { annotations }),
      ...pagerOf(plan.name, options),
      ...(options.outputPolicy !== undefined && { outputPolicy: options.outputPolicy }),
      source: "mcp",
      _meta: Object.freeze({ [TOOL_META_KEY]: toolMeta(tool, shown, options) }),
      handler: importing.handlerFor(plan),
    });
    // What a server says of declared errors and features is looked at before it is relied on.
    if (facts !== undefined) new OperationEntry(operation, vettingSettings());
    return operation;
  } catch (cause) {
    throw new ToolRefusal(cause instanceof Error ? cause.message : "It makes no operation.", { cause });
  }
}

function pagerOf(tool: string, { pagers }: ImportOptions): Pick<AnyOperation, "pager"> {
  const pager = pagers !== undefined && Object.hasOwn(pagers, tool) ? pagers[tool] : undefined;
  return pager === undefined ? {} : { pager };
}

function vettingSettings(): EntrySettings {
  const options = { codegen: false };
  return {
    outputPolicy: "off",
    compile: (schema, direction) => toOperationSchema(schema, direction, options),
    warn: () => {},
  };
}

const FOREIGN: ServedFacts = {
  wrapsInput: false,
  wrapsResult: false,
  takesAnything: false,
  declaresReadOnly: false,
};

function placeOf(
  tool: string,
  annotations: OperationAnnotations | undefined,
  { options: { namespace }, version }: ToolImport,
): OperationFacts {
  if (namespace === undefined) {
    throw new ToolRefusal("It names no operation id to keep, and there is no namespace to put it under.");
  }
  return {
    namespace,
    name: toOperationName(tool),
    type: annotations?.readOnly === true ? "query" : "mutation",
    version: isSemanticVersion(version) ? version : "0.0.0",
    served: FOREIGN,
  };
}

function toAnnotations(hints: unknown): OperationAnnotations | undefined {
  if (!isPlainObject(hints)) return undefined;
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = hints;
  const annotations = {
    ...(typeof readOnlyHint === "boolean" && { readOnly: readOnlyHint }),
    ...(typeof destructiveHint === "boolean" && { destructive: destructiveHint }),
    ...(typeof idempotentHint === "boolean" && { idempotent: idempotentHint }),
    ...(typeof openWorldHint === "boolean" && { openWorld: openWorldHint }),
  };
  return Object.keys(annotations).length === 0 ? undefined : annotations;
}

/** Waybill says of every query it serves that it only reads: only what it declares is an annotation of its own. */
function ownAnnotations(
  annotations: OperationAnnotations | undefined,
  facts: OperationFacts | undefined,
): OperationAnnotations | undefined {
  if (facts === undefined || facts.type === "mutation" || facts.served.declaresReadOnly) return annotations;
  if (annotations?.readOnly !== true) return annotations;
  const { readOnly: _, ...own } = annotations;
  return Object.keys(own).length === 0 ? undefined : own;
}

/** All that an operation has no field for, and the namespace of the server, which with `keepIds` is not that of the operation. */
function toolMeta(
  tool: Readonly<Record<string, unknown>>,
  { original, findings }: ToolTexts,
  { namespace: source = "" }: ImportOptions,
): object {
  const { title: _t, description: _d, inputSchema: _i, outputSchema: _o, ...rest } = tool;
  return Object.freeze({
    ...rest,
    source,
    ...(Object.keys(original).length > 0 && { original: Object.freeze(original) }),
    ...(Object.keys(findings).length > 0 && { findings: Object.freeze(findings) }),
  });
}

const KEY = "x-mcp-header";

/** The names HTTP allows (RFC 9110, section 5.1). */
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** The types whose values can be written in a header; a number has more than one spelling. */
const MIRRORED_TYPES: ReadonlySet<unknown> = new Set(["string", "integer", "boolean"]);

/**
 * Says what is wrong with the `x-mcp-header` members of an input schema, if anything is: the 2026-07-28 revision has clients
 * leave out such tools over HTTP, as nobody could tell what is routed by those headers. The schema must not be nested deeply.
 */
export function findHeaderFault(inputSchema: unknown): string | undefined {
  return visit(inputSchema, { path: [], isReachable: true }, new Set());
}

/** Where a schema stands in the input, and whether every input could have what it describes. */
interface SchemaPlace {
  readonly path: readonly string[];
  readonly isReachable: boolean;
}

function visit(schema: unknown, place: SchemaPlace, names: Set<string>): string | undefined {
  if (!isObject(schema)) return undefined;
  let fault = Object.hasOwn(schema, KEY) ? faultOf(schema, place, names) : undefined;
  forEachSubschema(schema as JsonSchemaObject, (inner, keyword, key) => {
    const isProperty = keyword === "properties";
    const path = isProperty ? [...place.path, String(key)] : place.path;
    fault ??= visit(inner, { path, isReachable: place.isReachable && isProperty }, names);
  });
  return fault;
}

function faultOf(
  schema: Readonly<Record<string, unknown>>,
  { path, isReachable }: SchemaPlace,
  names: Set<string>,
): string | undefined {
  const where =
    path.length === 0 ? "its input" : `its property ${JSON.stringify(toPlainLine(path.join("."), 200))}`;
  if (!isReachable || path.length === 0) {
    return `The ${KEY} at ${where} stands where no property is that every input could have.`;
  }
  const name = schema[KEY];
  if (typeof name !== "string" || !HEADER_NAME.test(name)) {
    return `The ${KEY} of ${where} is no name that a header can have.`;
  }
  if (!MIRRORED_TYPES.has(schema["type"])) {
    return `The ${KEY} of ${where} is for a value that is no string, integer or boolean.`;
  }
  if (names.has(name.toLowerCase())) return `The ${KEY} of ${where} is that of another property too.`;
  names.add(name.toLowerCase());
  return undefined;
}

/** The texts of a tool as people see them, and what hides in all it says. */
interface ToolTexts {
  readonly title: string | undefined;
  readonly description: string;
  /** The texts as they came, of those that were cleaned. */
  readonly original: Readonly<Record<string, string>>;
  /** By field; the schemas count as one each. */
  readonly findings: Readonly<Record<string, readonly TextFinding[]>>;
  /** One sentence for each field with findings. */
  readonly notes: readonly string[];
}

const SCHEMAS = ["inputSchema", "outputSchema"] as const;

/**
 * Cleans the texts people see; the title of the annotations stands in for one that is missing, as the protocol wants. Schemas have
 * to stay as they are, or arguments would miss them: what hides there is found and said.
 */
function cleanTexts(tool: Readonly<Record<string, unknown>>): ToolTexts {
  const hints = isPlainObject(tool["annotations"]) ? tool["annotations"] : {};
  const original: Record<string, string> = {};
  const findings: Record<string, readonly TextFinding[]> = {};
  const notes: string[] = [];
  const report = (field: string, found: readonly TextFinding[], rest: string): void => {
    if (found.length === 0) return;
    findings[field] = found;
    notes.push(`Its ${field} holds hidden characters (${describeFindings(found)}); ${rest}.`);
  };
  const clean = (field: string, text: unknown): string | undefined => {
    if (typeof text !== "string") return undefined;
    const cleaned = cleanText(text);
    if (cleaned.text !== text) original[field] = text;
    report(field, cleaned.findings, "they are not shown");
    return cleaned.text;
  };
  clean("name", tool["name"]);
  const title = clean("title", tool["title"]);
  const fallback = clean("annotations.title", hints["title"]);
  const description = clean("description", tool["description"]) ?? "";
  for (const field of SCHEMAS) report(field, findHidden(tool[field]), "it is used as it came");
  return { title: title ?? fallback, description, original, findings, notes };
}

/** The schemas of an imported operation, and how they differ from what the tool declares. */
interface ToolSchemas {
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

interface SchemaSetting {
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
function toToolSchemas(tool: Readonly<Record<string, unknown>>, setting: SchemaSetting): ToolSchemas {
  const notes: string[] = [];
  const { facts, served, options } = setting;
  const inner = facts?.served.wrapsInput ? schemaInside(tool["inputSchema"], "input") : undefined;
  const takesAnything = facts?.served.takesAnything === true && isAnyObject(tool["inputSchema"]);
  const declared = takesAnything ? undefined : (inner ?? tool["inputSchema"]);
  const wrapsInput = takesAnything ? "unless-object" : inner !== undefined;
  if (tool["inputSchema"] === undefined) notes.push("It declares no inputSchema; any object is sent on.");
  const input = vetted("input", declared, notes);
  const { schema, isWrapped } = chooseOutput(tool["outputSchema"], setting);
  const output = vetted("output", schema, notes);
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

function vetted(direction: SchemaDirection, schema: unknown, notes: string[]): AnySchema | undefined {
  if (schema === undefined) return undefined;
  try {
    // The registry that takes the tool finds it compiled.
    toOperationSchema(schema as AnySchema, direction);
    return schema as AnySchema;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    notes.push(`Its ${direction}Schema is refused, and nothing is checked by it. ${reason}`);
    return undefined;
  }
}
