import { createHash } from "node:crypto";
import { CallError } from "../../../core/errors/errors.ts";
import { isObject } from "../../../core/schema/json-schema.ts";
import { isSequence, parseMediaType } from "../../media-types.ts";
import type { OpenApiOverlay } from "../openapi-options.ts";
import type { UnusableOperation } from "../plan.ts";
import type { DocumentVersion, Located } from "./document-file.ts";
import type { DocumentFiles } from "./document-files.ts";
import { patchOperation } from "./overlays.ts";

/** Keys of a path item that hold operations. */
const METHODS: readonly string[] = [
  "get",
  "put",
  "post",
  "delete",
  "options",
  "head",
  "patch",
  "trace",
  "query",
];

/** Methods that only read. */
export const READING_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "QUERY"]);

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
  const operationId = textOrNone(value["operationId"]);
  const { method, path, item } = place;
  const patched =
    overlays.length === 0 ? value : patchOperation(value, { method, path, operationId }, overlays);
  if (!isObject(patched)) return "It is not an object.";
  const namedId = patched === value ? operationId : textOrNone(patched["operationId"]);
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
export function textOrNone(value: unknown): string | undefined {
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

/** What names an operation in its document. */
export interface OperationSign {
  /** Upper case. */
  readonly method: string;
  readonly path: string;
  /** The `operationId`, after patches. */
  readonly namedId: string | undefined;
}

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_./-]*$/;
const MAX_LENGTH = 200;
/** How a name ends that was made of one that could not be kept. */
const MADE = /-x[0-9a-f]{10}$/;
const SEGMENT = /^[A-Za-z0-9_.-]*$/;
const PARAMETER = /^\{([A-Za-z0-9_.-]+)\}$/;
const STARTS_WITH_METHOD = new RegExp(`^(?:${METHODS.join("|")})/`);

/**
 * Names every operation of a document, each by what it is alone, so that another one never changes a name: the `operationId`
 * where it is a name, else method and path with `{id}` written `by-id`. What does not fit is made to fit, and ends in a hash of
 * what it was. Only an `operationId` that is given twice is no name for either.
 */
export function nameOperations(signs: readonly OperationSign[]): string[] {
  const counts = new Map<string, number>();
  for (const { namedId } of signs) {
    if (namedId !== undefined) counts.set(namedId, (counts.get(namedId) ?? 0) + 1);
  }
  return signs.map((sign) => {
    if (sign.namedId === undefined) return nameOfPlace(sign);
    if ((counts.get(sign.namedId) ?? 0) > 1)
      return made(sign.namedId, `twice ${sign.namedId} ${place(sign)}`);
    return nameOfId(sign.namedId, sign);
  });
}

/** Tells whether an operation may be called that. */
export function isName(name: unknown): boolean {
  return typeof name === "string" && NAME.test(name) && name.length <= MAX_LENGTH;
}

function nameOfId(id: string, sign: OperationSign): string {
  const fits = isName(id) && !MADE.test(id);
  if (fits && (!STARTS_WITH_METHOD.test(id) || id === nameOfPlace(sign))) return id;
  return made(id, `id ${id}`);
}

function nameOfPlace(sign: OperationSign): string {
  const method = sign.method.toLowerCase();
  const segments = sign.path.split("/");
  let fits = METHODS.includes(method) && sign.method === method.toUpperCase() && segments.shift() === "";
  const words = segments.map((segment) => {
    const parameter = PARAMETER.exec(segment)?.[1];
    if (parameter !== undefined) return `by-${parameter}`;
    if (!SEGMENT.test(segment) || segment.startsWith("by-")) fits = false;
    return segment.replace(/[{}]/g, "");
  });
  const name = `${method}/${words.join("/")}`;
  fits &&= name.length <= MAX_LENGTH && !MADE.test(name);
  return fits ? name : made(name, `place ${place(sign)}`);
}

function place({ method, path }: OperationSign): string {
  return `${method} ${path}`;
}

/** A readable name out of any text; `origin` is what tells it from others that read the same. */
function made(text: string, origin: string): string {
  const hash = createHash("sha256").update(origin).digest("hex").slice(0, 10);
  const readable = text.replace(/[^A-Za-z0-9_./-]+/g, "_").replace(/^[./-]+/, "");
  return `${readable.slice(0, MAX_LENGTH - 12) || "operation"}-x${hash}`;
}
