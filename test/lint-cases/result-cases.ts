import type { LintCase } from "./lint-case.ts";

const rawResult = ["rawResult"] as const;

const RAW = '{ content: [{ type: "text", text: "hi" }] }';

const registered = (handler: string): string => `server.registerTool("a", {}, ${handler});`;

/** Results written by hand. */
export const RAW_RESULTS: readonly LintCase[] = [
  { name: "an arrow's value", code: registered(`async () => (${RAW})`), finds: rawResult, biome: true },
  { name: "a returned object", code: registered(`() => { return ${RAW}; }`), finds: rawResult, biome: true },
  {
    name: "a function expression",
    code: `server.setRequestHandler(Schema, async function () { if (x) { return ${RAW}; } return y; });`,
    finds: rawResult,
    biome: true,
  },
  {
    name: "more keys and quoted ones",
    code: `tool("a", () => ({ isError: true, "content": [image, { text: "x", 'type': 'text' }] }));`,
    finds: rawResult,
    biome: true,
  },
  {
    name: "one branch",
    code: registered(`() => { return x ? y : ${RAW}; }`),
    finds: rawResult,
    biome: true,
  },
  {
    name: "several returns",
    code: registered(`() => { if (x) return ${RAW}; return ${RAW}; }`),
    finds: ["rawResult", "rawResult"],
    biome: true,
  },
  {
    name: "both branches",
    code: registered(`() => x ? ${RAW} : ${RAW}`),
    finds: ["rawResult", "rawResult"],
    biome: true,
  },
  {
    name: "a side of an operator",
    code: registered(`() => { if (a) return x ?? ${RAW}; if (b) return x || ${RAW}; return x && ${RAW}; }`),
    finds: ["rawResult", "rawResult", "rawResult"],
    biome: false,
  },
  {
    name: "a settled promise",
    code: registered(`() => Promise.resolve(${RAW})`),
    finds: rawResult,
    biome: false,
  },
  {
    name: "a constant of the handler",
    code: registered(`() => { const result = ${RAW}; return result; }`),
    finds: rawResult,
    biome: false,
  },
  {
    name: "a constant content",
    code: registered('() => { const content = [{ type: "text", text: "x" }]; return { content }; }'),
    finds: rawResult,
    biome: false,
  },
  {
    name: "a property called handler",
    code: `export const t = { handler: async () => (${RAW}) };`,
    finds: rawResult,
    biome: true,
  },
  {
    name: "a method called execute",
    code: `export const t = { async execute() { return ${RAW}; } };`,
    finds: rawResult,
    biome: true,
  },
  {
    name: "a class with a method called run",
    code: `export class T { run() { return ${RAW}; } }`,
    finds: rawResult,
    biome: true,
  },
  {
    name: "a handler by name",
    code: `server.addTool("a", answer); async function answer() { return ${RAW}; }`,
    finds: rawResult,
    biome: true,
  },
  {
    name: "a handler by the name of a constant",
    code: `const answer = () => (${RAW}); server.tool("a", answer); export const t = { handler: answer };`,
    finds: rawResult,
    biome: false,
  },
];

/** Objects that are no results, or no result of a handler. */
export const OTHER_RESULTS: readonly LintCase[] = [
  {
    name: "a chat message",
    code: registered(`() => ({ role: "user", ...x, content: [{ type: "text" }] })`),
    biome: false,
  },
  { name: "an argument", code: registered(`() => toToolResult(${RAW})`), biome: false },
  {
    name: "an argument in a payload",
    code: registered(`() => { return composeToolPayload({ data: ${RAW} }); }`),
    biome: false,
  },
  {
    name: "a function inside the handler",
    code: registered(`() => { each(() => { return ${RAW}; }); return x; }`),
    biome: false,
  },
  { name: "a function that is no handler", code: `export function plain() { return ${RAW}; }`, biome: false },
  {
    name: "blocks that are not text",
    code: registered('() => ({ content: [{ type: "image" }, block] })'),
    biome: false,
  },
  {
    name: "content that is no list",
    code: registered('() => ({ content: { type: "text" } })'),
    biome: false,
  },
  {
    name: "a constant from outside",
    code: `const shared = ${RAW}; ${registered("() => { return shared; }")}`,
    biome: false,
  },
  {
    name: "a handler taken from an object",
    code: `export const g = ({ handler = () => (${RAW}) }) => handler;`,
    biome: false,
  },
];
