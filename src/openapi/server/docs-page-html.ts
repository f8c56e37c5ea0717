import type { DescribedOperation, OpenApiDocument } from "./document/openapi-document.ts";

/** The page around swagger-ui. */
export function swaggerPage(title: string): string {
  return page(
    title,
    `<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
<script src="docs/swagger-ui-bundle.js" defer></script>
<script src="docs/init.js" defer></script>`,
    '<div id="api"></div>',
  );
}

/** Starts swagger-ui; left to itself, it would have the document checked by a server of its makers. */
export function swaggerScript(documentUrl: string): string {
  const settings = { url: documentUrl, dom_id: "#api", deepLinking: true, validatorUrl: null };
  return `SwaggerUIBundle(${JSON.stringify(settings)});\n`;
}

/** A list of all operations that needs no script. */
export function plainPage(title: string, documentUrl: string, document: OpenApiDocument | undefined): string {
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
${about === undefined ? "" : `<p>${escapeHtml(about)}</p>\n`}<p>The whole of it, for machines: <a href="${escapeHtml(documentUrl)}">${escapeHtml(documentUrl)}</a>.
Install <code>swagger-ui-dist</code> beside this server, and this page lets you try every call.</p>
<ul>
${rows.join("\n")}
</ul>
</main>`,
  );
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
