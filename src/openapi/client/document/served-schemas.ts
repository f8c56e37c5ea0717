import { parseJsonTextOrNone } from "../../../core/json/json-text.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import type { JsonSchema, JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { SCHEMA_LIMITS } from "../../../core/schema/limits.ts";
import { definitionRef } from "../../../core/schema/plain-schema.ts";
import { componentName, EXACT, withReferences } from "../../component-schemas.ts";
import { copyExtension } from "./copy-json.ts";

/** A schema of a document that Waybill wrote, read back. */
interface ReadComponent {
  /** Its references lead to `#/$defs`. */
  readonly schema: JsonSchemaObject;
  /** Names of the components it refers to. */
  readonly refs: ReadonlySet<string>;
}

/** The schemas that Waybill wrote into a document, as they were before; hostile like everything else in a document. */
export class ServedSchemas {
  readonly #components: Readonly<Record<string, unknown>>;
  readonly #read = new Map<string, ReadComponent | undefined>();

  constructor(document: unknown) {
    const components = isPlainObject(document) ? document["components"] : undefined;
    const schemas = isPlainObject(components) ? components["schemas"] : undefined;
    this.#components = isPlainObject(schemas) ? schemas : {};
  }

  /** Reads what is written of a schema: word for word, as text where it has references of its own, or where it stands. */
  read(written: unknown): JsonSchema | undefined {
    const name = componentName(written);
    return name === undefined ? readExact(written) : this.#restore(name);
  }

  /** A schema with all that it refers to under `$defs`; where that is more than is checked it has none, and is refused. */
  #restore(name: string): JsonSchema | undefined {
    const root = this.#component(name);
    if (root === undefined) return undefined;
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
    const exact = isPlainObject(facts) ? readExact(facts["schema"]) : written;
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

/** A schema with references of its own is written as text, so that nothing takes them for the document's. */
function readExact(written: unknown): JsonSchema | undefined {
  const value = typeof written === "string" ? parseJsonTextOrNone(written) : written;
  return typeof value === "boolean" || isPlainObject(value) ? value : undefined;
}
