import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { PLAIN_STYLES, plainPage, swaggerPage, swaggerScript } from "./docs-page-html.ts";
import type { OpenApiDocument } from "./document/openapi-document.ts";
import type { HttpAnswer } from "./http-exchange.ts";

/** What the API page shows, and with what. */
interface DocsPageOptions {
  readonly title: string;
  /** The path of the document, beside `/docs`. */
  readonly documentPath: string;
  /** The folder of `swagger-ui-dist`; without one, a plain page lists the operations. @default found where it is installed */
  readonly swaggerUi?: string | false | undefined;
}

/** Answers what is asked for under `/docs`; nothing for a path that is not there. The document is read for the plain page alone. */
export type DocsPage = (
  path: string,
  readDocument?: () => OpenApiDocument | Promise<OpenApiDocument>,
) => Promise<HttpAnswer | undefined>;

/** Files of `swagger-ui-dist` that are handed out, and nothing else of it. */
const FILES: ReadonlyMap<string, string> = new Map([
  ["swagger-ui.css", "text/css; charset=utf-8"],
  ["swagger-ui-bundle.js", "text/javascript; charset=utf-8"],
  ["favicon-32x32.png", "image/png"],
]);

/** Nothing from anywhere else, nothing written into the page, and no page around it. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const PAGE = "/docs";

/** Creates the page that shows the API to people; it asks no other server for anything, and works under any prefix. */
export function createDocsPage(options: DocsPageOptions): DocsPage {
  const { title, documentPath, swaggerUi = findSwaggerUi() } = options;
  // Relative to the page, which lies beside the document.
  const documentUrl = documentPath.replace(/^\/+/, "");
  if (swaggerUi === false) return createPlainPage(title, documentUrl);
  const files = new Map<string, Promise<Uint8Array>>();
  return async (path) => {
    if (path === PAGE) return html(swaggerPage(title));
    if (path === `${PAGE}/`) return TO_PAGE;
    if (!path.startsWith(`${PAGE}/`)) return undefined;
    const name = path.slice(PAGE.length + 1);
    if (name === "init.js") return asset(swaggerScript(documentUrl), "text/javascript; charset=utf-8");
    const type = FILES.get(name);
    if (type === undefined) return undefined;
    return asset(await readOnce(files, join(swaggerUi, name)), type);
  };
}

/** A file that could not be read is tried again. */
function readOnce(files: Map<string, Promise<Uint8Array>>, file: string): Promise<Uint8Array> {
  const known = files.get(file);
  if (known !== undefined) return known;
  const reading = readFile(file);
  files.set(file, reading);
  reading.catch(() => files.delete(file));
  return reading;
}

function createPlainPage(title: string, documentUrl: string): DocsPage {
  return async (path, readDocument) => {
    switch (path) {
      case PAGE:
        return html(plainPage(title, documentUrl, await readDocument?.()));
      case `${PAGE}/`:
        return TO_PAGE;
      case `${PAGE}/page.css`:
        return asset(PLAIN_STYLES, "text/css; charset=utf-8");
      default:
        return undefined;
    }
  };
}

function findSwaggerUi(): string | false {
  try {
    return dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
  } catch {
    return false;
  }
}

const GUARDED = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "content-security-policy": POLICY,
};

/** From `/docs/`, relative addresses would lead elsewhere. */
const TO_PAGE: HttpAnswer = { status: 308, headers: { location: "../docs", ...GUARDED }, body: undefined };

function html(body: string): HttpAnswer {
  const type = "text/html; charset=utf-8";
  return { status: 200, headers: { "content-type": type, "cache-control": "no-cache", ...GUARDED }, body };
}

function asset(body: string | Uint8Array, type: string): HttpAnswer {
  const caching = "private, max-age=3600";
  return { status: 200, headers: { "content-type": type, "cache-control": caching, ...GUARDED }, body };
}
