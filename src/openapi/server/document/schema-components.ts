import { setOwn } from "../../../core/json/json-value.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { LinkedSchemas } from "./linked-schemas.ts";
import { NotDescribable, rewriteMember, rewriteSchema } from "./rewrite-schema.ts";

/** Collects the schemas of a document under names that every tool can refer to. */
export class SchemaComponents {
  readonly #schemas = new Map<string, JsonSchema>();
  /** How often each name was asked for, those given out instead included. */
  readonly #taken = new Map<string, number>();

  /** Adds a schema, and each one it refers to, under names that begin with `name`; gives the reference to it. */
  add(name: string, schema: JsonSchema): JsonSchemaObject {
    if (!isObject(schema)) return schema ? {} : { not: {} };
    const own = this.#free(name);
    this.#put(this.#link(own, schema), own);
    return { $ref: `#/components/schemas/${own}` };
  }

  /** Adds a schema in the same way, and gives each of its properties; none where it cannot be described. */
  addProperties(name: string, schema: JsonSchemaObject): Readonly<Record<string, JsonSchemaObject>> {
    const own = this.#free(name);
    const linked = this.#link(own, schema);
    const written: Record<string, JsonSchemaObject> = {};
    const properties = isObject(schema["properties"]) ? schema["properties"] : {};
    if (!this.#put(linked, own)) return written;
    for (const key of Object.keys(properties)) setOwn(written, key, rewriteMember(properties[key], linked));
    return written;
  }

  /** By name, in alphabetical order. */
  toJson(): Readonly<Record<string, JsonSchema>> {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #link(own: string, schema: JsonSchemaObject): LinkedSchemas {
    return new LinkedSchemas(schema, own, (known) => this.#free(`${own}.${known || "part"}`));
  }

  /** Tells whether all of it could be described. */
  #put(linked: LinkedSchemas, own: string): boolean {
    try {
      const written = [...linked.named()].map(
        ([schema, name]) => [name, rewriteSchema(schema, linked)] as const,
      );
      for (const [name, schema] of written) this.#schemas.set(name, schema);
      return true;
    } catch (error) {
      if (!(error instanceof NotDescribable)) throw error;
      this.#schemas.set(own, NOT_DESCRIBABLE);
      return false;
    }
  }

  #free(wanted: string): string {
    const name = wanted.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, MAX_NAME);
    let count = (this.#taken.get(name) ?? 0) + 1;
    this.#taken.set(name, count);
    if (count === 1) return name;
    while (this.#taken.has(`${name}_${count}`)) count++;
    this.#taken.set(name, count).set(`${name}_${count}`, 1);
    return `${name}_${count}`;
  }
}

const MAX_NAME = 400;

const NOT_DESCRIBABLE: JsonSchema = {
  description: "What it takes cannot be described here; the operation checks it nevertheless.",
};
