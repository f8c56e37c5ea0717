import type { PageCredential } from "./docs-page-script.ts";
import type { DescribedOperation, OpenApiDocument } from "./document/openapi-document.ts";

/** The page around swagger-ui; with credentials, it has a form that asks for one. */
export function swaggerPage(title: string, credentials: readonly PageCredential[]): string {
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
export function plainPage({ title, documentUrl, credentials, document }: PlainPage): string {
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

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
  ["'", "&#39;"],
]);

/** Text as it can stand anywhere in a page, within an attribute too. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => ESCAPES.get(sign) ?? "");
}

/** Readable on a phone, in light and in dark. */
export const PLAIN_STYLES = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
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
export const SIGN_IN_STYLES = `#sign-in { max-width: 26rem; margin: 10vh auto 0; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; }
#sign-in[hidden], #sign-in [hidden] { display: none; }
#sign-in h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
#sign-in label { display: block; margin: 0.75rem 0; }
#sign-in input, #sign-in select { box-sizing: border-box; display: block; width: 100%; padding: 0.5rem; font: inherit; }
#sign-in button { padding: 0.5rem 1rem; font: inherit; }
#sign-in-fault { color: #b00020; }
`;
