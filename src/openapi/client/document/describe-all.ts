import type { OpenApiOverlay, OperationOverlay } from "../openapi-options.ts";
import type { DescribedOperation } from "../plan.ts";
import { type DescriptionContext, describeOperation } from "./described-operation.ts";
import type { FoundOperation } from "./index-operations.ts";
import { isName, nameOperations } from "./operation-names.ts";
import { findOverlay } from "./overlays.ts";
import { sendsType } from "./plan-bodies.ts";

/** Describes the operations that were found, but for those that overlays hide, each under a name of its own. */
export function describeAll(
  found: readonly FoundOperation[],
  overlays: readonly OpenApiOverlay[],
  context: DescriptionContext,
): DescribedOperation[] {
  const names = nameOperations(found);
  const twice = givenTwice(found);
  const taken = new Map<string, FoundOperation>();
  const described: DescribedOperation[] = [];
  found.forEach((one, i) => {
    const overlay = findOverlay(one, overlays);
    if (overlay.hide === true) return;
    const name = overlay.name ?? (names[i] as string);
    checkName(name, one, taken);
    taken.set(name, one);
    const notes = one.namedId === undefined ? [] : notesOn(one.namedId, twice);
    const operation = describeOperation(one, { name, overlay, notes }, context);
    checkContentType(operation, overlay);
    described.push(operation);
  });
  return described;
}

function checkName(name: string, one: FoundOperation, taken: ReadonlyMap<string, FoundOperation>): void {
  if (!isName(name)) {
    throw new TypeError(
      `The overlay names ${placeOf(one)} ${JSON.stringify(name)}; a name is letters, digits, "_", "-", "." and "/", at most 200.`,
    );
  }
  const other = taken.get(name);
  if (other === undefined) return;
  throw new TypeError(
    `Two operations are named "${name}": ${placeOf(other)} and ${placeOf(one)}; give one another name in the overlay.`,
  );
}

/** Reads an operation in full, as few overlays ask for a media type. */
function checkContentType(operation: DescribedOperation, { contentType }: OperationOverlay): void {
  if (contentType === undefined) return;
  const declared = (operation.plan().body?.content ?? []).map(({ mediaType }) => mediaType);
  if (declared.some((mediaType) => sendsType(mediaType, contentType))) return;
  const known =
    declared.length === 0
      ? "it takes no body"
      : `declared are ${declared.slice(0, 10).map(quote).join(", ")}`;
  throw new TypeError(
    `The overlay asks for the contentType ${quote(contentType)} of ${placeOf(operation)}, which it does not have: ${known}.`,
  );
}

/** Places of operations by the `operationId` that several of them have. */
function givenTwice(found: readonly FoundOperation[]): ReadonlyMap<string, readonly string[]> {
  const places = new Map<string, string[]>();
  for (const one of found) {
    if (one.namedId === undefined) continue;
    const list = places.get(one.namedId);
    if (list === undefined) places.set(one.namedId, [placeOf(one)]);
    else if (list.length < 5) list.push(placeOf(one));
  }
  for (const [id, list] of places) if (list.length < 2) places.delete(id);
  return places;
}

function notesOn(id: string, twice: ReadonlyMap<string, readonly string[]>): string[] {
  const places = twice.get(id);
  if (places === undefined) return [];
  return [`The operationId ${quote(id)} is given to ${places.join(" and ")}; their names end in a hash.`];
}

function placeOf({ method, path }: { readonly method: string; readonly path: string }): string {
  return `${method} ${path}`;
}

function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}
