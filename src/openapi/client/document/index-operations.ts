import { CallError } from "../../../core/errors/errors.ts";
import { isObject } from "../../../core/schema/json-schema.ts";
import { isSequence, parseMediaType } from "../../media-types.ts";
import type { OpenApiOverlay } from "../openapi-options.ts";
import type { UnusableOperation } from "../plan.ts";
import type { Located } from "./document-file.ts";
import type { DocumentFiles } from "./document-files.ts";
import { METHODS } from "./http-methods.ts";
import type { OperationSign } from "./operation-names.ts";
import { patchOperation } from "./overlays.ts";
import type { DocumentVersion } from "./upgrade-document.ts";

type Fields = Record<string, unknown>;

/** An operation of a document, found and not yet read. */
export interface FoundOperation extends OperationSign {
  /** As in the document. */
  readonly operationId: string | undefined;
  readonly item: Located;
  /** Its object, patched by overlays. */
  readonly operation: Located & { readonly value: Fields };
}

/** The operations of a document, and what only looks like one. */
export interface OperationIndex {
  readonly found: readonly FoundOperation[];
  readonly unusable: readonly UnusableOperation[];
}

/** What operations are looked for by. */
export interface IndexOptions {
  readonly overlays: readonly OpenApiOverlay[];
  readonly operations: number;
  /** What errors call the document. */
  readonly name: string;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;

/** Finds every operation of a document, without reading what they say. */
export function indexOperations(files: DocumentFiles, options: IndexOptions): OperationIndex {
  const found: FoundOperation[] = [];
  const unusable: UnusableOperation[] = [];
  const root = files.root.root as Fields;
  const paths = root["paths"];
  if (paths !== undefined && paths !== null && !isObject(paths)) {
    throw new Error(`${options.name} has "paths" that are not an object.`);
  }
  for (const path of Object.keys(paths ?? {})) {
    if (path.startsWith("x-")) continue;
    const at = files.follow({ value: (paths as Fields)[path], file: files.root, key: "" });
    if (typeof at === "string" || !isObject(at.value)) {
      const reason = typeof at === "string" ? `Its reference leads nowhere: ${at}.` : "It is not an object.";
      unusable.push({ name: path, reason });
      continue;
    }
    unusable.push(...misplacedIn(at.value, path));
    for (const [method, value] of operationsOf(at.value)) {
      const name = `${method} ${path}`;
      const operation = findOperation(value, { method, path, item: at }, options.overlays);
      if (typeof operation === "string") unusable.push({ name, reason: operation });
      else found.push(operation);
      if (found.length > options.operations) {
        const message = `${options.name} has more than ${options.operations} operations (limits.operations).`;
        throw new CallError("TOO_LARGE", message);
      }
    }
  }
  return { found, unusable };
}

function* operationsOf(item: Fields): Iterable<readonly [method: string, operation: unknown]> {
  for (const method of METHODS) {
    if (Object.hasOwn(item, method)) yield [method.toUpperCase(), item[method]];
  }
  const { additionalOperations } = item;
  if (!isObject(additionalOperations)) return;
  for (const method of Object.keys(additionalOperations)) {
    // A method that has a field of its own is only looked for there; no answer to CONNECT is one of an API.
    if (!METHODS.includes(method.toLowerCase()) && method !== "CONNECT")
      yield [method, additionalOperations[method]];
  }
}

/** What is meant to be an operation, and stands where none is looked for. */
function misplacedIn(item: Fields, path: string): UnusableOperation[] {
  const misplaced: UnusableOperation[] = [];
  const add = (method: string, reason: string) => misplaced.push({ name: `${method} ${path}`, reason });
  for (const key of Object.keys(item)) {
    const method = key.toLowerCase();
    if (key !== method && METHODS.includes(method))
      add(key, `"${key}" is no field of a path; write "${method}".`);
  }
  const { additionalOperations } = item;
  for (const key of isObject(additionalOperations) ? Object.keys(additionalOperations) : []) {
    const method = key.toLowerCase();
    if (METHODS.includes(method)) {
      add(
        key,
        `It stands in "additionalOperations"; "${method}" is a field of the path itself, so move it there.`,
      );
    } else if (key === "CONNECT")
      add(key, "CONNECT opens a tunnel, which is no call; give it another method.");
  }
  return misplaced;
}

function findOperation(
  value: unknown,
  place: { readonly method: string; readonly path: string; readonly item: Located },
  overlays: readonly OpenApiOverlay[],
): FoundOperation | string {
  if (!isObject(value)) return "It is not an object.";
  if (!TOKEN.test(place.method)) return "Its method is no HTTP method.";
  if (!place.path.startsWith("/")) return `Its path does not begin with "/".`;
  const operationId = textOf(value["operationId"]);
  const { method, path, item } = place;
  const patched =
    overlays.length === 0 ? value : patchOperation(value, { method, path, operationId }, overlays);
  if (!isObject(patched)) return "It is not an object.";
  const namedId = patched === value ? operationId : textOf(patched["operationId"]);
  // Field by field: spreading objects would take as long as all the rest of finding an operation.
  return {
    method,
    path,
    operationId,
    namedId,
    item,
    operation: { value: patched, file: item.file, key: "" },
  };
}

/** A text that says something. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}

/** Tells whether everything an operation answers with, where it succeeds, is a stream. */
export function answersWithStream(
  { operation }: FoundOperation,
  files: DocumentFiles,
  version: DocumentVersion,
): boolean {
  const { responses, produces } = operation.value;
  if (!isObject(responses)) return false;
  let streams = 0;
  for (const status of Object.keys(responses)) {
    if (!/^2(?:\d\d|XX)$/i.test(status)) continue;
    const at = files.follow({ value: responses[status], file: operation.file, key: "" });
    if (typeof at === "string" || !isObject(at.value)) continue;
    for (const mediaType of mediaTypesOf(
      at.value,
      produces ?? (files.root.root as Fields)["produces"],
      version,
    )) {
      if (!isSequence(parseMediaType(mediaType).kind)) return false;
      streams += 1;
    }
  }
  return streams > 0;
}

function mediaTypesOf(response: Fields, produces: unknown, version: DocumentVersion): string[] {
  if (version !== "2.0") return isObject(response["content"]) ? Object.keys(response["content"]) : [];
  if (response["schema"] === undefined || !Array.isArray(produces)) return [];
  return produces.filter((type) => typeof type === "string");
}
