import { isPlainObject, setOwn } from "../../../core/json/json-value.ts";

/** Applies a JSON merge patch (RFC 7396) to a copy along the way; what the patch does not name is shared with the target. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isPlainObject(patch)) return patch;
  const result: Record<string, unknown> = isPlainObject(target) ? { ...target } : {};
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value === undefined) continue;
    if (value === null) delete result[key];
    else setOwn(result, key, mergePatch(Object.hasOwn(result, key) ? result[key] : undefined, value));
  }
  return result;
}

/** Makes one patch that does what two do in turn; unlike a merge, it keeps what is to be removed. */
export function joinPatches(first: unknown, then: unknown): unknown {
  if (!isPlainObject(first) || !isPlainObject(then)) return then;
  const result: Record<string, unknown> = { ...first };
  for (const key of Object.keys(then)) {
    if (then[key] === undefined) continue;
    setOwn(result, key, Object.hasOwn(result, key) ? joinPatches(result[key], then[key]) : then[key]);
  }
  return result;
}
