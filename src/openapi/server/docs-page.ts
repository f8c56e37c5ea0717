import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { escapeHtml } from "../../core/text/clean-text.ts";
import type { HttpAnswer } from "../../http/exchange.ts";
import type { DescribedOperation, OpenApiDocument } from "./document/openapi-document.ts";
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

/**
 * Creates the page that shows the API to people; it asks no other server for anything, and works under any prefix. It says nothing
 * of the operations by itself, so that everybody may open it: what it shows, it asks for with the credential of the person who looks.
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

/** Finds the folder of `swagger-ui-dist` where it is installed. */
export function findSwaggerUi(): string | false {
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

/** A way of telling an API who is calling, as the API page asks for it. */
export interface PageCredential {
  /** What people know it as. */
  readonly label: string;
  readonly header: string;
  /** What stands before it in that header. */
  readonly prefix: string;
}

/** Starts swagger-ui; left to itself, it would have the document checked by a server of its makers. */
function swaggerScript(documentUrl: string, credentials: readonly PageCredential[]): string {
  const settings = { url: documentUrl, dom_id: "#api", deepLinking: true, validatorUrl: null };
  const { url, ...shown } = settings;
  const own = `const url = ${JSON.stringify(url)};
const settings = ${JSON.stringify(shown)};
${SHOW}`;
  if (credentials.length === 0)
    return `${own}fetch(url).then(async (response) => show(await response.json(), {}));\n`;
  return `${own}const ways = ${JSON.stringify(credentials)};
${SIGN_IN}`;
}

/** Shows the document; an API that is served beside it is called where the page came from, under whatever name and path that is. */
const SHOW = `function show(spec, more) {
  const base = new URL(".", new URL(url, location.href)).href.replace(/\\/$/, "");
  const servers = spec["x-waybill"]?.base === "." ? [{ url: base }] : spec.servers;
  SwaggerUIBundle({ ...settings, ...more, spec: { ...spec, servers } });
}
`;

/**
 * Asks for a credential where the document is not shown without one. It stays in this tab, and goes with every request to the
 * server that the page came from, and with no other; what is entered in swagger-ui itself comes first.
 */
const SIGN_IN = `const KEY = "waybill-credential " + location.pathname;
const form = document.getElementById("sign-in");
const fault = document.getElementById("sign-in-fault");
let held = readHeld();

function readHeld() {
  try {
    const { way, value } = JSON.parse(sessionStorage.getItem(KEY));
    return ways[way] === undefined || typeof value !== "string" ? undefined : { way, value };
  } catch {
    return undefined;
  }
}

function addTo(headers) {
  if (held === undefined) return headers;
  const { header, prefix } = ways[held.way];
  const isThere = Object.keys(headers).some((name) => name.toLowerCase() === header);
  return isThere ? headers : { ...headers, [header]: prefix + held.value };
}

async function open() {
  const tried = held;
  const response = await fetch(url, { headers: addTo({}) }).catch(() => undefined);
  const isRefused = response === undefined ? tried !== undefined : response.status === 401;
  form.hidden = !isRefused;
  if (!isRefused) return show(await response?.json(), { requestInterceptor });
  held = undefined;
  sessionStorage.removeItem(KEY);
  fault.hidden = tried === undefined;
  form.elements.value.focus();
}

function requestInterceptor(request) {
  const isOurs = new URL(request.url, location.href).origin === location.origin;
  if (isOurs) request.headers = addTo(request.headers ?? {});
  return request;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  held = { way: Number(form.elements.way.value), value: form.elements.value.value.trim() };
  sessionStorage.setItem(KEY, JSON.stringify(held));
  form.elements.value.value = "";
  open();
});

open();
`;

/** The page around swagger-ui; with credentials, it has a form that asks for one. */
function swaggerPage(title: string, credentials: readonly PageCredential[]): string {
  const styles = credentials.length === 0 ? "" : '\n<link rel="stylesheet" href="docs/sign-in.css">';
  return page(
    title,
    `<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">${styles}
<script src="docs/swagger-ui-bundle.js" defer></script>
<script src="docs/init.js" defer></script>`,
    `${credentials.length === 0 ? "" : signInForm(title, credentials)}<div id="api"></div>`,
  );
}

function signInForm(title: string, credentials: readonly PageCredential[]): string {
  const ways = credentials.map(({ label }, at) => `<option value="${at}">${escapeHtml(label)}</option>`);
  return `<form id="sign-in" hidden>
<h1>${escapeHtml(title)}</h1>
<p>This API asks who is calling. What you enter stays in this tab.</p>
<p id="sign-in-fault" role="alert" hidden>This was not accepted.</p>
<label>With <select name="way">${ways.join("")}</select></label>
<label>Credential <input name="value" type="password" autocomplete="off" required></label>
<button>Show the API</button>
</form>
`;
}

/** What the plain page shows. */
interface PlainPage {
  readonly title: string;
  readonly documentUrl: string;
  readonly credentials: readonly PageCredential[];
  /** Nothing for callers that nobody knows, who are told how to say who they are. */
  readonly document: OpenApiDocument | undefined;
}

/** A list of all operations that needs no script. */
function plainPage({ title, documentUrl, credentials, document }: PlainPage): string {
  const rows = Object.entries(document?.paths ?? {}).flatMap(([path, { get, post }]) => [
    ...(get === undefined ? [] : [row("GET", path, get)]),
    ...(post === undefined ? [] : [row("POST", path, post)]),
  ]);
  const about = document?.info.description;
  return page(
    title,
    '<link rel="stylesheet" href="docs/page.css">',
    `<main>
<h1>${escapeHtml(title)}</h1>
${about === undefined ? "" : `<p>${escapeHtml(about)}</p>\n`}${document === undefined ? howToAsk(credentials) : ""}<p>The whole of it, for machines: <a href="${escapeHtml(documentUrl)}">${escapeHtml(documentUrl)}</a>.
Install <code>swagger-ui-dist</code> beside this server, and this page lets you try every call.</p>
<ul>
${rows.join("\n")}
</ul>
</main>`,
  );
}

function howToAsk(credentials: readonly PageCredential[]): string {
  if (credentials.length === 0) return "";
  const ways = credentials.map(({ header, prefix }) => `<code>${escapeHtml(`${header}: ${prefix}…`)}</code>`);
  return `<p>This API asks who is calling. Ask for this page with the header ${ways.join(" or ")}, and it lists the operations.</p>\n`;
}

function row(method: string, path: string, { summary, description, deprecated }: DescribedOperation): string {
  const title = summary === undefined ? "" : `<h2>${escapeHtml(summary)}</h2>`;
  const text = description === undefined || description === "" ? "" : `<p>${escapeHtml(description)}</p>`;
  const mark = deprecated === true ? " <em>deprecated</em>" : "";
  return `<li><code><b>${method}</b> ${escapeHtml(path)}</code>${mark}${title}${text}</li>`;
}

function page(title: string, head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
${head}
</head>
<body>
${body}
</body>
</html>
`;
}

/** Readable on a phone, in light and in dark. */
const PLAIN_STYLES = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; }
main { max-width: 48rem; margin: 0 auto; padding: 1rem; }
ul { list-style: none; padding: 0; }
li { border-top: 1px solid #8884; padding: 0.75rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 0.25rem 0 0; }
p { margin: 0.25rem 0 0; white-space: pre-line; }
h1 + p, p + p { margin-bottom: 0.75rem; }
code { font-size: 0.9rem; }
`;

/** For the form alone: all else on its page is swagger-ui's. */
const SIGN_IN_STYLES = `#sign-in { max-width: 26rem; margin: 10vh auto 0; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; }
#sign-in[hidden], #sign-in [hidden] { display: none; }
#sign-in h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
#sign-in label { display: block; margin: 0.75rem 0; }
#sign-in input, #sign-in select { box-sizing: border-box; display: block; width: 100%; padding: 0.5rem; font: inherit; }
#sign-in button { padding: 0.5rem 1rem; font: inherit; }
#sign-in-fault { color: #b00020; }
`;
