import { toJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject, type JsonValue } from "../../core/json/json-value.ts";
import { defineOperation } from "../../core/operation/operation.ts";
import type { AnyOperation, OperationAnnotations } from "../../core/operation/operation-types.ts";
import { isSemanticVersion } from "../../core/operation/semantic-version.ts";
import { type EntrySettings, OperationEntry } from "../../core/registry/operation-entry.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import type { SourceSecrets } from "../../core/secrets/source-secrets.ts";
import { OPERATION_META_KEY, TOOL_META_KEY } from "../meta-keys.ts";
import { toOperationName } from "../names.ts";
import type { WrapsInput } from "./call-tool.ts";
import { findHeaderFault } from "./header-fault.ts";
import type { ImportLimits, ImportOptions } from "./import-options.ts";
import type { DefinitionChange } from "./lock/definition-diff.ts";
import { canonicalJson, type ToolDefinition, toDefinition } from "./lock/definition-hash.ts";
import type { ToolPin } from "./lock/tool-pin.ts";
import type { ResultReading } from "./read-tool-result.ts";
import { type OperationFacts, readOperationFacts, type ServedFacts } from "./tool-facts.ts";
import { type ToolSchemas, toToolSchemas } from "./tool-schemas.ts";
import { cleanTexts, type ToolTexts } from "./tool-texts.ts";

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
  return { name, definition, change, fingerprint, ...importListed(listed, name, definition, importing) };
}

/** Makes the operation of a tool that callers see; `definition` is what the tool is now. */
function importListed(
  tool: Readonly<Record<string, unknown>>,
  name: string,
  definition: ToolDefinition,
  importing: ToolImport,
): Pick<ImportedTool, "operation" | "plan" | "notes"> {
  const { options } = importing;
  const told = readOperationFacts(tool["_meta"]);
  const facts = options.keepIds === true ? told : undefined;
  const schemas = toToolSchemas(tool, { name, facts, served: told?.served, options });
  const shown = cleanTexts(tool);
  const plan = toPlan(name, schemas, facts, definition, importing);
  const operation = toImported(tool, { facts, schemas, shown, importing, plan });
  return { operation, plan, notes: [...schemas.notes, ...shown.notes, ...taskNotes(tool["execution"])] };
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

/** Tells of a tool whose server wants every call of it to be a task. */
function taskNotes(execution: unknown): readonly string[] {
  const isTask = isPlainObject(execution) && execution["taskSupport"] === "required";
  return isTask ? ["It runs only as a task, which is not supported: its server refuses calls of it."] : [];
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
  name: string,
  schemas: ToolSchemas,
  facts: OperationFacts | undefined,
  definition: ToolDefinition,
  { options: { reader, recoverJson, keepIds: isTrusted }, secrets }: ToolImport,
): ToolPlan {
  const declared = new Set(facts?.errors?.map(({ code }) => code));
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
  };
}

interface Material {
  readonly facts: OperationFacts | undefined;
  readonly schemas: ToolSchemas;
  readonly shown: ToolTexts;
  readonly importing: ToolImport;
  readonly plan: ToolPlan;
}

function toImported(tool: Readonly<Record<string, unknown>>, material: Material): AnyOperation {
  const { facts, schemas, shown, importing, plan } = material;
  const { options, version } = importing;
  const { input, output } = schemas;
  const annotations = ownAnnotations(toAnnotations(tool["annotations"]), facts);
  const { served: _, ...kept } = facts ?? placeOf(plan.name, options, annotations, version);
  try {
    const operation: AnyOperation = defineOperation({
      ...kept,
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
  { namespace }: ImportOptions,
  annotations: OperationAnnotations | undefined,
  version: unknown,
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
