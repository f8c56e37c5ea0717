// A server on standard input and output all of whose texts are hostile: the first argument names a JSON file with a list of them.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const texts = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"));
const all = texts.join(" ");
const property = (text, at) => [
  `${text}p${at}`,
  { type: "string", description: text, title: text, default: text, enum: [text, "x"] },
];
const inputSchema = { type: "object", properties: Object.fromEntries(texts.map(property)), description: all };
const outputSchema = { type: "object", properties: {}, description: all };
const object = { type: "object" };
const annotations = { title: all, readOnlyHint: true };

const tools = [
  ...texts.map((text, at) => ({
    name: `t${at}`,
    title: text,
    description: `${text} d${at}`,
    inputSchema: object,
  })),
  ...texts.map((text, at) => ({ name: `${text}n${at}`, description: text, inputSchema: object })),
  { name: "fields", title: all, description: all, inputSchema, outputSchema, annotations },
  { name: "says", description: "says", inputSchema: object, annotations: { readOnlyHint: true } },
  { name: "refuses", description: "refuses", inputSchema: object, annotations: { readOnlyHint: true } },
  { name: "breaks", description: "breaks", inputSchema: object, annotations: { readOnlyHint: true } },
  { name: "envelope", description: "envelope", inputSchema: object, annotations: { readOnlyHint: true } },
];

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const content = texts.map((text) => ({ type: "text", text }));
const structuredContent = { texts, members: Object.fromEntries(texts.map((text) => [text, text])) };

const CALLS = {
  fields: () => ({ result: { content, structuredContent } }),
  says: () => ({ result: { content, structuredContent } }),
  refuses: () => ({ result: { content, isError: true } }),
  breaks: () => ({ error: { code: -32_000, message: all, data: structuredContent } }),
  envelope: () => ({
    result: {
      content: [{ type: "text", text: all }],
      isError: true,
      structuredContent: {
        ok: false,
        error: { code: all, message: all },
        meta: { status: "error", summary: all, details: texts, nextSteps: texts },
      },
      _meta: {
        "dev.waybill/result": { outcome: "tool-error", code: all, message: all, details: structuredContent },
      },
    },
  }),
};

const ANSWERS = {
  initialize: () => ({
    result: {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {}, logging: {} },
      serverInfo: { name: all, title: all, version: all },
      instructions: all,
    },
  }),
  "tools/list": () => ({ result: { tools } }),
  "tools/call": ({ name, _meta }) => {
    process.stderr.write(`${all}\n`);
    send({ method: "notifications/message", params: { level: "error", logger: all, data: all } });
    if (_meta?.progressToken !== undefined)
      texts.forEach((message, progress) => {
        send({
          method: "notifications/progress",
          params: { progressToken: _meta.progressToken, progress, total: texts.length, message },
        });
      });
    return CALLS[name]?.() ?? { error: { code: -32_602, message: `${all} ${name}` } };
  },
  ping: () => ({ result: {} }),
};

process.stderr.write(`${all}\n`);
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  send({ id, ...(ANSWERS[method]?.(params ?? {}) ?? { error: { code: -32_601, message: all } }) });
});
