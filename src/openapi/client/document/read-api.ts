import { isPlainObject } from "../../../core/json/json-value.ts";
import { isSemanticVersion } from "../../../core/operation/semantic-version.ts";
import { isObject } from "../../../core/schema/json-schema.ts";
import { shortText } from "../../../core/text/truncate-text.ts";
import type { DocumentLimits, OpenApiOverlay, OperationOverlay } from "../openapi-options.ts";
import type { IndexedApi, IndexedOperation, OperationPlan, SecuritySchemePlan } from "../plan.ts";
import { copyExtension } from "./copy-json.ts";
import { type DocumentVersion, outwardReferences } from "./document-file.ts";
import { DocumentFiles } from "./document-files.ts";
import {
  answersWithStream,
  type FoundOperation,
  indexOperations,
  isName,
  nameOperations,
  READING_METHODS,
  textOrNone,
} from "./index-operations.ts";
import type { DocumentReader } from "./inline-operation.ts";
import { DocumentLoader, type FetchText, nameOf, toLocation } from "./load-source.ts";
import { checkOverlays, findOverlay, patchDocument } from "./overlays.ts";
import { planSchemes, planServers } from "./plan-access.ts";
import { sendsType } from "./plan-bodies.ts";
import { planOperation } from "./plan-operation.ts";
import { SchemaBook } from "./schema-book.ts";
import { ServedSchemas } from "./served-schemas.ts";

/** How a document is read. */
export interface ReadApiOptions {
  readonly overlays: readonly OpenApiOverlay[];
  readonly limits: DocumentLimits;
  /** Reads the text behind an http or https address; without it, such a document is refused. */
  readonly fetchText?: FetchText | undefined;
  /** Hears of references that lead nowhere. @default nobody does */
  readonly warn?: ((message: string, cause?: unknown) => void) | undefined;
  /** Milliseconds for reading the document and all files it refers to. @default 120_000 */
  readonly timeoutMs?: number | undefined;
}

/** The limits in force unless others are given. */
const DOCUMENT_LIMITS = { documentBytes: 67_108_864, files: 1_000, operations: 20_000 } as const;

const TIMEOUT_MS = 120_000;

/** Reads and indexes a document; what its operations say in full is read when they are first used. */
export async function readApi(document: string | URL | object, options: ReadApiOptions): Promise<IndexedApi> {
  const { root, version, location, name, files } = await readFiles(document, options);
  const { overlays } = options;
  const { operations } = limitsOf(options);
  const { found, unusable } = indexOperations(files, { overlays, operations, name });
  checkOverlays(found, overlays);
  const schemes = planSchemes(files);
  const reader = { files, version, schemes, book: new SchemaBook(files, version) };
  const info = isObject(root) && isObject(root["info"]) ? root["info"] : {};
  return {
    title: textOrNone(info["title"]) ?? "Untitled API",
    version: semanticVersionOf(info["version"]),
    description: textOrNone(info["description"]),
    location,
    servers: planServers({}, {}, files.root),
    operations: describeAll(found, overlays, reader),
    unusable,
    asksForCredentials: [root, ...found.map(({ operation }) => operation.value)].some(asksForCredentials),
    schemes,
    servedSchemas: new ServedSchemas(root),
  };
}

function asksForCredentials(holder: unknown): boolean {
  const security = isObject(holder) ? holder["security"] : undefined;
  return Array.isArray(security) && security.some((one) => isObject(one) && Object.keys(one).length > 0);
}

interface ReadFiles {
  /** The document itself, patched by overlays. */
  readonly root: unknown;
  readonly version: DocumentVersion;
  readonly location: URL | undefined;
  /** What errors call the document. */
  readonly name: string;
  readonly files: DocumentFiles;
}

async function readFiles(document: string | URL | object, options: ReadApiOptions): Promise<ReadFiles> {
  const { documentBytes, files: limit } = limitsOf(options);
  const { fetchText, overlays, warn = () => {}, timeoutMs = TIMEOUT_MS } = options;
  const loader = new DocumentLoader({ documentBytes, fetchText, timeoutMs });
  try {
    const { value, name, location, mayReferOut } = await readRoot(document, loader);
    const root = patchDocument(value, overlays);
    const version = versionOf(root, name);
    const files = new DocumentFiles({ url: location?.href ?? "", root });
    if (location !== undefined && (mayReferOut || overlaysReferOut(overlays))) {
      await files.loadReferenced({ loader, files: limit, warn });
    }
    return { root, version, location, name, files };
  } finally {
    loader.close();
  }
}

interface Root {
  readonly value: unknown;
  readonly name: string;
  readonly location: URL | undefined;
  readonly mayReferOut: boolean;
}

async function readRoot(document: string | URL | object, loader: DocumentLoader): Promise<Root> {
  if (typeof document === "string" || document instanceof URL) {
    const location = toLocation(document);
    return { ...(await loader.load(location)), name: nameOf(location), location };
  }
  if (!isPlainObject(document)) {
    throw new TypeError("The document is a path, a URL, or the plain object that a parser gives.");
  }
  return { value: document, name: "The document", location: undefined, mayReferOut: true };
}

function limitsOf({ limits }: ReadApiOptions): { documentBytes: number; files: number; operations: number } {
  return {
    documentBytes: limits.documentBytes ?? DOCUMENT_LIMITS.documentBytes,
    files: limits.files ?? DOCUMENT_LIMITS.files,
    operations: limits.operations ?? DOCUMENT_LIMITS.operations,
  };
}

function overlaysReferOut(overlays: readonly OpenApiOverlay[]): boolean {
  return overlays.some((overlay) => outwardReferences(overlay).size > 0);
}

type Fields = Record<string, unknown>;

/** Other kinds of documents, by what only they have. */
const OTHERS: readonly (readonly [what: string, test: (document: Fields) => boolean])[] = [
  ["an AsyncAPI document", (document) => document["asyncapi"] !== undefined],
  ["an Arazzo document", (document) => document["arazzo"] !== undefined],
  [
    "an OpenAPI overlay; pass it as the overlay of a document",
    (document) => document["overlay"] !== undefined,
  ],
  [
    "a Swagger 1 document; convert it to OpenAPI 3 first",
    (document) => document["swaggerVersion"] !== undefined,
  ],
  ["a Postman collection; export it as OpenAPI", isPostman],
  ["a Google discovery document", (document) => String(document["kind"]).startsWith("discovery#")],
  [
    "a GraphQL schema",
    ({ data, __schema: schema }) => isObject(schema) || (isObject(data) && isObject(data["__schema"])),
  ],
  ["a HAR file", ({ log }) => isObject(log) && Array.isArray(log["entries"])],
  ["a RAML document", (document) => document["#%RAML"] !== undefined],
  ["a JSON Schema", ({ $schema }) => typeof $schema === "string" && $schema.includes("json-schema.org")],
];

function isPostman({ info, item }: Fields): boolean {
  return Array.isArray(item) || (isObject(info) && info["_postman_id"] !== undefined);
}

/** Tells how a document is to be read, or refuses it by saying what it is. */
function versionOf(document: unknown, name: string): DocumentVersion {
  if (!isObject(document)) throw new TypeError(`${name} is not an OpenAPI document: it is no object.`);
  const { swagger, openapi } = document;
  if (swagger !== undefined && /^2(?:\.0)?$/.test(String(swagger))) return "2.0";
  const version = openapi === undefined ? undefined : String(openapi);
  if (version !== undefined && /^3\.0(?:\.|$|-)|^3$/.test(version)) return "3.0";
  if (version !== undefined && /^3\.\d/.test(version)) return "3.1";
  const said = version ?? (swagger === undefined ? undefined : String(swagger));
  if (said !== undefined) {
    throw new TypeError(`${name} is of version "${said.slice(0, 20)}"; OpenAPI 2.0 and 3.x can be read.`);
  }
  const other = OTHERS.find(([, test]) => test(document))?.[0];
  throw new TypeError(
    other === undefined
      ? `${name} is not an OpenAPI document: it has neither "openapi" nor "swagger".`
      : `${name} is not an OpenAPI document: this is ${other}.`,
  );
}

/** Makes a semantic version of what a document calls its version. */
function semanticVersionOf(version: unknown): string {
  const text = typeof version === "number" ? String(version) : version;
  if (typeof text !== "string") return "0.0.0";
  const bare: string = text.trim().replace(/^v/i, "");
  if (isSemanticVersion(bare)) return bare;
  const numbers = /^(\d{1,9})(?:[.-](\d{1,9}))?(?:[.-](\d{1,9}))?/.exec(text.trim().replace(/^v/i, ""));
  if (numbers === null) return "0.0.0";
  return [1, 2, 3].map((place) => Number(numbers[place] ?? 0)).join(".");
}

/** Describes the operations that were found, but for those that overlays hide, each under a name of its own. */
function describeAll(
  found: readonly FoundOperation[],
  overlays: readonly OpenApiOverlay[],
  context: DescriptionContext,
): IndexedOperation[] {
  const names = nameOperations(found);
  const twice = givenTwice(found);
  const taken = new Map<string, FoundOperation>();
  const described: IndexedOperation[] = [];
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
function checkContentType(operation: IndexedOperation, { contentType }: OperationOverlay): void {
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
  return JSON.stringify(shortText(text, 100));
}

/** What operations are described by, beside what the document says about each. */
export interface DescriptionContext extends DocumentReader {
  readonly schemes: Readonly<Record<string, SecuritySchemePlan>>;
}

/** What is said of an operation beside its document. */
export interface OperationNaming {
  readonly name: string;
  readonly overlay: OperationOverlay;
  /** What is already known to be odd about it. */
  readonly notes: readonly string[];
}

/** Describes an operation that was found; the rest is read when it is asked for. */
function describeOperation(
  found: FoundOperation,
  { name, overlay, notes }: OperationNaming,
  context: DescriptionContext,
): IndexedOperation {
  const { method, path, operationId } = found;
  const { summary, description, tags, deprecated, parameters, "x-waybill": waybill } = found.operation.value;
  const title = overlay.title ?? textOrNone(summary);
  let plan: OperationPlan | undefined;
  return {
    name,
    operationId,
    method,
    path,
    type: typeOf(found, overlay, context),
    title,
    description: overlay.description ?? textOrNone(description) ?? textOrNone(summary) ?? `${method} ${path}`,
    tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [],
    deprecated: deprecated === true,
    waybill: waybill === undefined ? undefined : copyExtension(waybill),
    parameters,
    plan() {
      plan ??= planOperation(
        { ...found, notes, contentType: overlay.contentType, schemes: context.schemes },
        context,
      );
      return plan;
    },
  };
}

function typeOf(
  found: FoundOperation,
  { readOnly, stream }: OperationOverlay,
  { files, version }: DescriptionContext,
): IndexedOperation["type"] {
  if (stream ?? answersWithStream(found, files, version)) return "subscription";
  return (readOnly ?? READING_METHODS.has(found.method.toUpperCase())) ? "query" : "mutation";
}
