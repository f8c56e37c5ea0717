import { isObject, type JsonSchema, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { ReferenceTargets } from "../../core/schema/reference-targets.ts";

/** Names that can stand in a reference as they are, for every validator. */
const SAFE_NAME = /^[\w.-]+$/;

const DEFINITIONS = ["$defs", "definitions"] as const;

/**
 * Knows what every reference of a document means, and a plain pointer for it: to the root, to a definition that stays where it
 * is, or to a new definition. So neither `$id` nor anchors are needed to follow them.
 */
export class SchemaReferences extends ReferenceTargets {
  readonly #pointers = new Map<JsonSchema, string>();
  /** Schemas that are referred to where no pointer is safe, with the names of their new definitions. */
  readonly moved = new Map<JsonSchemaObject, string>();

  constructor(root: JsonSchemaObject) {
    super(root);
    this.#pointers.set(root, "#");
    this.#keepDefinitions(root, "#");
    this.forEachReference((target) => {
      if (!this.#pointers.has(target)) this.#move(target, root);
    });
  }

  /** The reference that leads to a schema that is referred to. */
  pointerTo(target: JsonSchema): string | undefined {
    return this.#pointers.get(target);
  }

  #keepDefinitions(schema: JsonSchemaObject, pointer: string): void {
    for (const keyword of DEFINITIONS) {
      const members = schema[keyword];
      if (!isObject(members)) continue;
      for (const name of Object.keys(members)) {
        const member = members[name];
        if (!isObject(member) || !SAFE_NAME.test(name) || name in Object.prototype) continue;
        if (this.#pointers.has(member)) continue;
        this.#pointers.set(member, `${pointer}/${keyword}/${name}`);
        this.#keepDefinitions(member, `${pointer}/${keyword}/${name}`);
      }
    }
  }

  #move(target: JsonSchemaObject, root: JsonSchemaObject): void {
    const taken = isObject(root["$defs"]) ? root["$defs"] : {};
    let name = `ref${this.moved.size + 1}`;
    while (Object.hasOwn(taken, name)) name = `_${name}`;
    this.moved.set(target, name);
    this.#pointers.set(target, `#/$defs/${name}`);
  }
}
