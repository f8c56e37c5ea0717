import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { HttpAnswer } from "../../http/exchange.ts";
import { PLAIN_STYLES, plainPage, SIGN_IN_STYLES, swaggerPage } from "./docs-page-html.ts";
import { type PageCredential, swaggerScript } from "./docs-page-script.ts";
import type { OpenApiDocument } from "./document/openapi-document.ts";
import type { HttpHandlerOptions } from "./http-handler-options.ts";

/** What the API page shows, and with what. */
interface DocsPageOptions {
  readonly title: string;
  /** The path of the document, beside `/docs`. */
  readonly documentPath: string;
  /** The folder of `swagger-ui-dist`; without one, a plain page lists the operations. @default found where it is installed */
  readonly swaggerUi?: string | false | undefined;
  /** Ways in which callers say who they are, where they are asked. @default none */
  readonly credentials?: readonly PageCredential[] | undefined;
}

/** Answers what is asked for under `/docs`; nothing for a path that is not there. The document is read for the plain page alone. */
export type DocsPage = (
  path: string,
  readDocument?: () => OpenApiDocument | Promise<OpenApiDocument>,
) => Promise<HttpAnswer | undefined>;

const SCRIPT = "text/javascript; charset=utf-8";
const STYLES = "text/css; charset=utf-8";

/** Files of `swagger-ui-dist` that are handed out, and nothing else of it. */
const FILES: ReadonlyMap<string, string> = new Map([
  ["swagger-ui.css", STYLES],
  ["swagger-ui-bundle.js", SCRIPT],
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

/** Tells whether a path is that of the page itself. */
export function isDocsPage(path: string): boolean {
  return path === PAGE || path === `${PAGE}/`;
}

/**
 * Creates the page that shows the API to people; it asks no other server for anything, and works under any prefix. It says nothing
 * of the operations by itself, so that everybody may open it: what it shows, it asks for with the credential of whoever looks.
 */
export function createDocsPage(options: DocsPageOptions): DocsPage {
  const { title, documentPath, credentials = [], swaggerUi = findSwaggerUi() } = options;
  // Relative to the page, which lies beside the document.
  const documentUrl = documentPath.replace(/^\/+/, "");
  if (swaggerUi === false) return createPlainPage({ title, documentUrl, credentials });
  const files = new Map<string, Promise<Uint8Array>>();
  return async (path) => {
    switch (path) {
      case PAGE:
        return html(swaggerPage(title, credentials));
      case `${PAGE}/`:
        return toPage();
      case `${PAGE}/init.js`:
        return asset(swaggerScript(documentUrl, credentials), SCRIPT, "no-cache");
      case `${PAGE}/sign-in.css`:
        return asset(SIGN_IN_STYLES, STYLES);
      default:
        return path.startsWith(`${PAGE}/`)
          ? readFrom(swaggerUi, path.slice(PAGE.length + 1), files)
          : undefined;
    }
  };
}

async function readFrom(
  folder: string,
  name: string,
  files: Map<string, Promise<Uint8Array>>,
): Promise<HttpAnswer | undefined> {
  const type = FILES.get(name);
  return type === undefined ? undefined : asset(await readOnce(files, join(folder, name)), type);
}

/** The ways in which an API asks its callers who they are. */
export function pageCredentials(options: HttpHandlerOptions): readonly PageCredential[] {
  const { auth, authenticate, describedAuth } = options;
  const own = auth?.apiKeys === undefined ? undefined : (auth.apiKeys.header ?? "x-api-key");
  const header = (own ?? (authenticate && describedAuth?.apiKeyHeader))?.toLowerCase();
  const takesTokens = auth?.bearer !== undefined || authenticate !== undefined;
  return [
    ...(header === undefined ? [] : [{ label: `API key (${header})`, header, prefix: "" }]),
    ...(takesTokens ? [{ label: "Bearer token", header: "authorization", prefix: "Bearer " }] : []),
  ];
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

function createPlainPage(shown: Omit<Parameters<typeof plainPage>[0], "document">): DocsPage {
  return async (path, readDocument) => {
    switch (path) {
      case PAGE:
        return html(plainPage({ ...shown, document: await readDocument?.() }));
      case `${PAGE}/`:
        return toPage();
      case `${PAGE}/page.css`:
        return asset(PLAIN_STYLES, STYLES);
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
  "referrer-policy": "no-referrer",
  "content-security-policy": POLICY,
};

/** From `/docs/`, relative addresses would lead elsewhere. */
function toPage(): HttpAnswer {
  return { status: 308, headers: { location: "../docs", ...GUARDED }, body: undefined };
}

function html(body: string): HttpAnswer {
  const type = "text/html; charset=utf-8";
  return { status: 200, headers: { "content-type": type, "cache-control": "no-cache", ...GUARDED }, body };
}

function asset(body: string | Uint8Array, type: string, caching = "private, max-age=3600"): HttpAnswer {
  return { status: 200, headers: { "content-type": type, "cache-control": caching, ...GUARDED }, body };
}
