import { isPlainObject, parseJsonTextOrNone, setOwn } from "../../../core/json/json-value.ts";
import type { JsonSchema, JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { SCHEMA_LIMITS } from "../../../core/schema/limits.ts";
import { definitionRef } from "../../../core/schema/plain-schema.ts";
import {
  applyPatch,
  componentName,
  EXACT,
  IN_PARAMETERS,
  parameterName,
  withReferences,
  writtenReference,
} from "../../component-schemas.ts";
import { copyExtension } from "./copy-json.ts";

/** A schema of a document that Waybill wrote, read back. */
interface ReadComponent {
  /** Its references lead to `#/$defs`. */
  readonly schema: JsonSchemaObject;
  /** Names of the components it refers to. */
  readonly refs: ReadonlySet<string>;
}

/** Parameters of one operation that are read; Waybill writes fewer. */
const MAX_PARAMETERS = 1_000;

/** The schemas that Waybill wrote into a document, as they were before; hostile like everything else in a document. */
export class ServedSchemas {
  readonly #components: Readonly<Record<string, unknown>>;
  readonly #read = new Map<string, ReadComponent | undefined>();
  /** Parameters that operations share. */
  readonly #shared: Readonly<Record<string, unknown>>;
  readonly #parameters = new Map<string, Readonly<Record<string, unknown>>>();

  constructor(document: unknown) {
    const components = isPlainObject(document) ? document["components"] : undefined;
    const { schemas, parameters } = isPlainObject(components) ? components : {};
    this.#components = isPlainObject(schemas) ? schemas : {};
    this.#shared = isPlainObject(parameters) ? parameters : {};
  }

  /** Reads what is written of a schema: word for word, as text where it has references of its own, or where it stands. */
  read(written: unknown): JsonSchema | undefined {
    const name = componentName(written);
    const target = writtenReference(written);
    if (target !== undefined)
      return this.#restore({ schema: { $ref: definitionRef(target) }, refs: new Set([target]) });
    if (name === undefined) return readExact(written);
    const component = this.#component(name);
    return component === undefined ? undefined : this.#restore(component, name);
  }

  /** Reads a schema of an input in the same way; its properties may be said by the parameters of the operation alone. */
  readInput(written: unknown, parameters: unknown): JsonSchema | undefined {
    const schema = this.read(written);
    if (!isPlainObject(schema) || schema["properties"] !== IN_PARAMETERS) return schema;
    const properties: Record<string, unknown> = {};
    for (const parameter of Array.isArray(parameters) ? parameters.slice(0, MAX_PARAMETERS) : []) {
      const { name, in: place, description, schema: own } = this.#parameter(parameter);
      if (place !== "query" || typeof name !== "string" || !isPlainObject(own)) continue;
      setOwn(properties, name, typeof description === "string" ? { ...own, description } : own);
    }
    return { ...schema, properties };
  }

  #parameter(written: unknown): Readonly<Record<string, unknown>> {
    const name = isPlainObject(written) ? parameterName(written["$ref"]) : undefined;
    if (name === undefined) return copyExtension(written) ?? {};
    if (!this.#parameters.has(name)) {
      const found = Object.hasOwn(this.#shared, name) ? copyExtension(this.#shared[name]) : undefined;
      this.#parameters.set(name, found ?? {});
    }
    return this.#parameters.get(name) ?? {};
  }

  /** A schema with all that it refers to under `$defs`; where that is more than is checked it has none, and is refused. */
  #restore(root: ReadComponent, name = ""): JsonSchema {
    const reached = new Set(root.refs);
    const definitions: [string, JsonSchemaObject][] = [];
    const fromRoot = (schema: JsonSchemaObject) =>
      withReferences(schema, (reference) => (reference === definitionRef(name) ? "#" : undefined));
    for (const next of reached) {
      const found = next === name ? undefined : this.#component(next);
      if (found === undefined) continue;
      if (definitions.length >= SCHEMA_LIMITS.subschemas) return root.schema;
      for (const further of found.refs) reached.add(further);
      definitions.push([next, found.refs.has(name) ? fromRoot(found.schema) : found.schema]);
    }
    const schema = root.refs.has(name) ? fromRoot(root.schema) : root.schema;
    return definitions.length === 0 ? schema : { ...schema, $defs: Object.fromEntries(definitions) };
  }

  #component(name: string): ReadComponent | undefined {
    if (!this.#read.has(name)) this.#read.set(name, this.#readComponent(name));
    return this.#read.get(name);
  }

  #readComponent(name: string): ReadComponent | undefined {
    const component = Object.hasOwn(this.#components, name)
      ? copyExtension(this.#components[name])
      : undefined;
    if (component === undefined) return undefined;
    const { [EXACT]: facts, ...written } = component;
    const exact = readWith(written, facts);
    if (!isPlainObject(exact)) return undefined;
    const refs = new Set<string>();
    const schema = withReferences(exact, (reference) => {
      const target = componentName(reference);
      if (target === undefined) return undefined;
      refs.add(target);
      return definitionRef(target);
    });
    return { schema, refs };
  }
}

/** What Waybill wrote of a schema beside it: how it differs from what the document says, or all of it. */
function readWith(written: Record<string, unknown>, facts: unknown): JsonSchema | undefined {
  if (!isPlainObject(facts)) return written;
  if (facts["patch"] === undefined) return readExact(facts["schema"]);
  applyPatch(written, readExact(facts["patch"]));
  return written;
}

/** A schema with references of its own is written as text, so that nothing takes them for the document's. */
function readExact(written: unknown): JsonSchema | undefined {
  const value = typeof written === "string" ? parseJsonTextOrNone(written) : written;
  return typeof value === "boolean" || isPlainObject(value) ? value : undefined;
}
