import { isObject } from "./json-value.ts";

/** Makes a function of a schema and its document that is asked once for each schema: they are looked at on every key, and stay in one document. */
export function remember<T>(
  make: (schema: unknown, root: unknown) => T,
): (schema: unknown, root: unknown) => T {
  const known = new WeakMap<object, { readonly made: T }>();
  return (schema, root) => {
    if (!isObject(schema)) return make(schema, root);
    const found = known.get(schema) ?? { made: make(schema, root) };
    known.set(schema, found);
    return found.made;
  };
}
