import { isPlainObject } from "../../../core/json/json-value.ts";
import { isObject } from "../../../core/schema/json-schema.ts";
import type { DocumentLimits, OpenApiOverlay } from "../openapi-options.ts";
import type { DescribedApi } from "../plan.ts";
import { describeAll } from "./describe-all.ts";
import { outwardReferences } from "./document-file.ts";
import { DocumentFiles } from "./document-files.ts";
import { semanticVersionOf, versionOf } from "./document-info.ts";
import { DocumentLoader } from "./document-loader.ts";
import { indexOperations, textOf } from "./index-operations.ts";
import { type FetchText, nameOf, toLocation } from "./load-source.ts";
import { checkOverlays, patchDocument } from "./overlays.ts";
import { planSchemes } from "./plan-security.ts";
import { planServers } from "./plan-servers.ts";
import { SchemaBook } from "./schema-book.ts";
import { ServedSchemas } from "./served-schemas.ts";
import type { DocumentVersion } from "./upgrade-document.ts";

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
export async function readApi(
  document: string | URL | object,
  options: ReadApiOptions,
): Promise<DescribedApi> {
  const { root, version, location, name, files } = await readFiles(document, options);
  const { overlays } = options;
  const { operations } = limitsOf(options);
  const { found, unusable } = indexOperations(files, { overlays, operations, name });
  checkOverlays(found, overlays);
  const schemes = planSchemes(files);
  const reader = { files, version, schemes, book: new SchemaBook(files, version) };
  const info = isObject(root) && isObject(root["info"]) ? root["info"] : {};
  return {
    title: textOf(info["title"]) ?? "Untitled API",
    version: semanticVersionOf(info["version"]),
    description: textOf(info["description"]),
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
