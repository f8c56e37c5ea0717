import { isObject } from "../../../core/schema/json-schema.ts";
import type { OperationPlan, SecuritySchemePlan } from "../plan.ts";
import { copyExtension } from "./copy-json.ts";
import { type DocumentReader, inlineOperation, type OperationPlace } from "./inline-operation.ts";
import { mendSwagger, mendUpgraded } from "./mend-swagger.ts";
import { planBody, planResponses } from "./plan-bodies.ts";
import { plainPath, planParameters } from "./plan-parameters.ts";
import { planSecurity } from "./plan-security.ts";
import { planServers } from "./plan-servers.ts";
import type { Direction } from "./schema-variant.ts";
import { upgradeOperation } from "./upgrade-document.ts";
import { UsedDefinitions } from "./used-definitions.ts";

/** What is planned of a document. */
export interface PlanSource extends OperationPlace {
  readonly method: string;
  readonly path: string;
  /** The media type of the body that an overlay asks for. */
  readonly contentType: string | undefined;
  /** What is already known to be odd about it. */
  readonly notes: readonly string[];
  readonly schemes: Readonly<Record<string, SecuritySchemePlan>>;
}

/** Reads everything a document says about one operation, upgraded and mended. */
export function planOperation(source: PlanSource, reader: DocumentReader): OperationPlan {
  const notes = new Set(source.notes);
  const root = reader.files.root.root as Record<string, unknown>;
  const operation = source.operation.value as Record<string, unknown>;
  const inlined = inlineOperation(source, reader, notes);
  const lists = reader.version === "2.0" ? mendSwagger(inlined, notes) : undefined;
  const upgraded = upgradeOperation(inlined, reader.version);
  if (lists !== undefined) mendUpgraded(upgraded, lists);
  const used = new UsedDefinitions(notes);
  const schemas = (direction: Direction) => ({
    use: (schema: unknown) => reader.book.use(schema, direction, used),
    peek: reader.book.peek.bind(reader.book),
    notes,
  });
  const path = plainPath(source.path, upgraded["parameters"]);
  const item = isObject(source.item.value) ? source.item.value : {};
  return Object.freeze({
    method: source.method,
    path: path.text,
    servers: planServers(operation, item, reader.files.root),
    parameters: planParameters(upgraded, path, schemas("input")),
    body: planBody(upgraded["requestBody"], source.contentType, schemas("input")),
    responses: planResponses(upgraded["responses"], schemas("output")),
    ...planSecurity(operation["security"] ?? root["security"], source.schemes, notes),
    definitions: used.schemas,
    waybill: copyExtension(operation["x-waybill"]),
    notes: [...notes],
  });
}
