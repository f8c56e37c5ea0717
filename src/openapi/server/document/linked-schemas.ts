import { parsePointer } from "../../../core/json/json-pointer.ts";
import type { JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { ReferenceTargets } from "../../../core/schema/reference-targets.ts";

/** Knows what every reference of one schema means, and a name for each schema that one leads to. */
export class LinkedSchemas extends ReferenceTargets {
  readonly #names = new Map<JsonSchemaObject, string>();

  /** `toName` gives a free name for a schema known as something in its document, or as nothing. */
  constructor(root: JsonSchemaObject, name: string, toName: (known: string) => string) {
    super(root);
    this.#names.set(root, name);
    this.forEachReference((target, reference) => {
      if (!this.#names.has(target)) this.#names.set(target, toName(lastPartOf(reference)));
    });
  }

  /** Every schema that has a name, the root first. */
  named(): Iterable<readonly [JsonSchemaObject, string]> {
    return this.#names;
  }

  nameOf(schema: JsonSchemaObject): string | undefined {
    return this.#names.get(schema);
  }
}

function lastPartOf(reference: string): string {
  const hash = reference.indexOf("#");
  const fragment = hash === -1 ? "" : reference.slice(hash + 1);
  return (fragment.startsWith("/") ? parsePointer(fragment).at(-1) : fragment) ?? "";
}
