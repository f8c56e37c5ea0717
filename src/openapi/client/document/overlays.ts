import { isPlainObject, setOwn } from "../../../core/json/json-value.ts";
import { nearestNames } from "../../../core/text/nearest-name.ts";
import type { OpenApiOverlay, OperationOverlay } from "../openapi-options.ts";

/** What an overlay knows an operation by. */
interface Sign {
  readonly method: string;
  readonly path: string;
  readonly operationId: string | undefined;
}

const NOTHING: OperationOverlay = {};

/** Finds what all overlays together say about an operation: later ones win, and what they patch is patched in turn. */
export function findOverlay(sign: Sign, overlays: readonly OpenApiOverlay[]): OperationOverlay {
  let found = NOTHING;
  if (overlays.length === 0) return found;
  for (const overlay of overlaysOf(sign, overlays)) found = joinOverlays(found, overlay);
  return found;
}

function joinOverlays(first: OperationOverlay, then: OperationOverlay): OperationOverlay {
  const joined: Record<string, unknown> = { ...first, ...defined(then) };
  for (const patch of ["input", "output", "patch"] as const) {
    if (first[patch] !== undefined && then[patch] !== undefined) {
      joined[patch] = joinPatches(first[patch], then[patch]);
    }
  }
  return joined as OperationOverlay;
}

/** Merges the patches of all overlays into an operation object, in turn. */
export function patchOperation(operation: unknown, sign: Sign, overlays: readonly OpenApiOverlay[]): unknown {
  let patched = operation;
  for (const { patch } of overlaysOf(sign, overlays)) {
    if (patch !== undefined) patched = mergePatch(patched, patch);
  }
  return patched;
}

function overlaysOf(sign: Sign, overlays: readonly OpenApiOverlay[]): OperationOverlay[] {
  const found: OperationOverlay[] = [];
  for (const { operations } of overlays) {
    if (operations === undefined) continue;
    for (const key of Object.keys(operations)) {
      if (isNamedBy(sign, key)) found.push(operations[key] ?? {});
    }
  }
  return found;
}

function defined(overlay: OperationOverlay): OperationOverlay {
  return Object.fromEntries(Object.entries(overlay).filter(([, value]) => value !== undefined));
}

function isNamedBy(sign: Sign, key: string): boolean {
  if (key === sign.operationId) return true;
  const space = key.indexOf(" ");
  return (
    space > 0 &&
    key.slice(0, space).toUpperCase() === sign.method.toUpperCase() &&
    key.slice(space + 1).trim() === sign.path
  );
}

/** Applies what overlays say about the document as a whole. */
export function patchDocument(document: unknown, overlays: readonly OpenApiOverlay[]): unknown {
  return overlays.reduce((value, overlay) => mergePatch(value, overlay.document ?? {}), document);
}

/** Refuses overlays that name operations which are not there, and names those that may have been meant. */
export function checkOverlays(signs: readonly Sign[], overlays: readonly OpenApiOverlay[]): void {
  if (overlays.every(({ operations }) => operations === undefined)) return;
  const known = new Set<string>();
  for (const { method, path, operationId } of signs) {
    known.add(`${method} ${path}`);
    if (operationId !== undefined) known.add(operationId);
  }
  for (const { operations } of overlays) {
    for (const key of Object.keys(operations ?? {})) {
      if (signs.some((sign) => isNamedBy(sign, key))) continue;
      const near = nearestNames(key, known);
      const hint = near.length === 0 ? "" : ` Near it: ${near.map((name) => `"${name}"`).join(", ")}.`;
      throw new TypeError(`The overlay names "${key}", which is no operation of the document.${hint}`);
    }
  }
}

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
function joinPatches(first: unknown, then: unknown): unknown {
  if (!isPlainObject(first) || !isPlainObject(then)) return then;
  const result: Record<string, unknown> = { ...first };
  for (const key of Object.keys(then)) {
    if (then[key] === undefined) continue;
    setOwn(result, key, Object.hasOwn(result, key) ? joinPatches(result[key], then[key]) : then[key]);
  }
  return result;
}
