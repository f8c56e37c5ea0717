import { isPlainObject } from "../../../core/json/json-value.ts";
import { isObject } from "../../../core/schema/json-schema.ts";
import type { DocumentLimits, OpenApiOverlay } from "../openapi-options.ts";
import type { DescribedApi, DescribedOperation } from "../plan.ts";
import { type DescriptionContext, describeOperation } from "./described-operation.ts";
import { outwardReferences } from "./document-file.ts";
import { DocumentFiles } from "./document-files.ts";
import { semanticVersionOf, versionOf } from "./document-info.ts";
import { type FoundOperation, indexOperations, textOf } from "./index-operations.ts";
import { type FetchText, loadBytes, nameOf, toLocation } from "./load-source.ts";
import { nameOperations } from "./operation-names.ts";
import { checkOverlays, findOverlay, patchDocument } from "./overlays.ts";
import { parseDocument } from "./parse-document.ts";
import { planSchemes } from "./plan-security.ts";
import { SchemaBook } from "./schema-book.ts";

/** How a document is read. */
export interface ReadApiOptions {
  readonly overlays: readonly OpenApiOverlay[];
  readonly limits: DocumentLimits;
  /** Reads the text behind an http or https address; without it, such a document is refused. */
  readonly fetchText?: FetchText | undefined;
  /** Hears of references that lead nowhere. @default nobody does */
  readonly warn?: ((message: string, cause?: unknown) => void) | undefined;
}

/** The limits in force unless others are given. */
export const DOCUMENT_LIMITS = { documentBytes: 67_108_864, files: 1_000, operations: 20_000 } as const;

/** Reads and indexes a document; what its operations say in full is read when they are first used. */
export async function readApi(
  document: string | URL | object,
  options: ReadApiOptions,
): Promise<DescribedApi> {
  const source = await readRoot(document, options);
  const root = patchDocument(source.value, options.overlays);
  const version = versionOf(root, source.name);
  const files = new DocumentFiles({ url: source.location?.href ?? "", root });
  if (source.location !== undefined && (source.mayReferOut || overlaysReferOut(options.overlays))) {
    await files.loadReferenced({
      ...limitsOf(options),
      fetchText: options.fetchText,
      warn: options.warn ?? (() => {}),
    });
  }
  const { found, unusable } = indexOperations(files, {
    overlays: options.overlays,
    operations: limitsOf(options).operations,
  });
  checkOverlays(found, options.overlays);
  const schemes = planSchemes(files);
  const reader = { files, version, schemes, book: new SchemaBook(files, version) };
  const info = isObject(root) && isObject(root["info"]) ? root["info"] : {};
  return {
    title: textOf(info["title"]) ?? "Untitled API",
    version: semanticVersionOf(info["version"]),
    description: textOf(info["description"]),
    location: source.location,
    operations: describeAll(found, options.overlays, reader),
    unusable,
    schemes,
  };
}

function describeAll(
  found: readonly FoundOperation[],
  overlays: readonly OpenApiOverlay[],
  context: DescriptionContext,
): DescribedOperation[] {
  const names = nameOperations(found);
  const taken = new Map<string, FoundOperation>();
  const described: DescribedOperation[] = [];
  found.forEach((one, i) => {
    const overlay = findOverlay(one, overlays);
    if (overlay.hide === true) return;
    const name = overlay.name ?? (names[i] as string);
    const other = taken.get(name);
    if (other !== undefined) {
      throw new TypeError(
        `Two operations are named "${name}": ${other.method} ${other.path} and ${one.method} ${one.path}; give one another name in the overlay.`,
      );
    }
    taken.set(name, one);
    described.push(describeOperation(one, name, overlay, context));
  });
  return described;
}

interface Root {
  readonly value: unknown;
  readonly name: string;
  readonly location: URL | undefined;
  readonly mayReferOut: boolean;
}

async function readRoot(document: string | URL | object, options: ReadApiOptions): Promise<Root> {
  if (typeof document === "string" || document instanceof URL) {
    const location = toLocation(document);
    const name = nameOf(location);
    const { documentBytes } = limitsOf(options);
    const bytes = await loadBytes(location, { documentBytes, fetchText: options.fetchText });
    return { ...(await parseDocument(bytes, name)), name, location };
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
