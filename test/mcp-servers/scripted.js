// A server on standard input and output that does what it is asked to do wrong; the first argument says how it starts.
import { appendFileSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const mode = process.argv[2] ?? "legacy";
const answersSeen = [];
const cancelled = [];
const waiting = new Map();
const listening = [];
let rounds = 0;
let nextQuestion = 1;

if (process.env.STARTS) appendFileSync(process.env.STARTS, `${process.pid}\n`);
const starts = process.env.STARTS ? readFileSync(process.env.STARTS, "utf8").trim().split("\n").length : 1;
/** The first process of "downgrades" is of another version than those after it. */
let isModern = mode === "modern" || (mode === "downgrades" && starts === 1);
let initialized = 0;

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const complete = (result) => (isModern ? { resultType: "complete", ...result } : result);
const text = (value) => complete({ content: [{ type: "text", text: JSON.stringify(value) ?? "undefined" }] });

function ask(method, params) {
  const id = `q${nextQuestion++}`;
  send({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

const QUESTION = {
  message: "Sure?",
  requestedSchema: { type: "object", properties: { yes: { type: "boolean" } } },
};

const TOOLS = {
  echo: ({ params }) =>
    complete({
      content: [{ type: "alien", x: 1 }],
      structuredContent: params.arguments,
      odd: [null],
      seen: params,
    }),
  fails: ({ params }) => ({ error: params.arguments }),
  sleeps: () => undefined,
  cancelled: () => text(cancelled),
  progresses: ({ params }) => {
    for (let i = 1; i <= 3; i++) {
      send({
        method: "notifications/progress",
        params: { progressToken: params._meta?.progressToken, progress: i, extra: "e" },
      });
    }
    send({ method: "notifications/progress", params: { progressToken: 9_999, progress: 1 } });
    return text("done");
  },
  asks: async ({ params }) => {
    if (!isModern) return text(await ask(params.arguments.method, params.arguments.params ?? QUESTION));
    if (params.inputResponses) return text({ got: params.inputResponses, state: params.requestState });
    return {
      resultType: "input_required",
      inputRequests: {
        one: { method: params.arguments.method, params: params.arguments.params ?? QUESTION },
      },
      requestState: "s1",
    };
  },
  "asks-for-ever": () => ({ resultType: "input_required", requestState: `r${rounds++}` }),
  "is-new": () => ({ resultType: "task", taskId: "\u001b[31m7" }),
  crashes: () => {
    process.stderr.write("\u001b[31mthe disk is full\u001b[0m\n");
    process.exit(3);
  },
  "is-no-object": () => "text",
  notifies: () => {
    send({ method: "notifications/message", params: { level: "info", data: "hi" } });
    send({ method: "notifications/tools/list_changed" });
    process.stdout.write("noise\n");
    send({ id: 4_242, result: {} });
    return text("told");
  },
  /** Tells it over the latest subscription, where there is one. */
  changes: () => {
    const _meta = { "io.modelcontextprotocol/subscriptionId": listening.at(-1) };
    if (listening.length > 0) send({ method: "notifications/tools/list_changed", params: { _meta } });
    return text(listening.length);
  },
  "ends-listening": () => {
    send({ id: listening.at(-1), result: { resultType: "complete" } });
    return text(listening.length);
  },
  "asks-much": ({ params }) => {
    if (params.inputResponses) return text(Object.keys(params.inputResponses).length);
    const inputRequests = {};
    for (let i = 0; i < params.arguments.count; i++) inputRequests[`q${i}`] = { method: "roots/list" };
    return { resultType: "input_required", inputRequests };
  },
  "asks-rounds": ({ params }) => {
    const done = Number(params.requestState ?? 0);
    if (done === params.arguments.count) return text(done);
    return { resultType: "input_required", requestState: String(done + 1) };
  },
  meta: ({ params }) => text(params._meta ?? null),
  initialized: () => text(initialized),
};

async function handle(message) {
  const { id, method, params } = message;
  if (method === undefined) {
    answersSeen.push(message);
    waiting.get(id)?.(message.result ?? message.error);
    return;
  }
  if (method === "notifications/cancelled") cancelled.push(params.requestId);
  if (method === "notifications/initialized" && mode === "crashes-later")
    setTimeout(() => process.exit(5), 50);
  if (id === undefined) return;
  if (method === "server/discover") {
    if (mode === "exits-on-probe" || (mode === "downgrades" && !isModern)) process.exit(7);
    if (mode === "silent-on-probe" || mode === "silent-2025-11-25") return;
    if (mode === "both") isModern = true;
    if (!isModern) return send({ id, error: { code: -32601, message: "Method not found" } });
    const capabilities = { tools: { listChanged: true, odd: 1 }, extensions: { "x/y": {} } };
    return send({
      id,
      result: {
        resultType: "complete",
        supportedVersions: ["2026-07-28"],
        capabilities,
        instructions: "Be kind.",
        ttlMs: 0,
        cacheScope: "private",
      },
    });
  }
  if (method === "initialize") {
    initialized += 1;
    if (mode === "strict" && "_meta" in params)
      return send({ id, error: { code: -32602, message: "Invalid params" } });
    if (mode === "exits-on-initialize") process.exit(9);
    if (mode === "deaf") return;
    if (isModern) {
      const data = { supported: ["2026-07-28"], requested: params.protocolVersion };
      return send({ id, error: { code: -32022, message: "Unsupported protocol version", data } });
    }
    return send({
      id,
      result: {
        protocolVersion: ["both", "silent-2025-11-25"].includes(mode) ? "2025-11-25" : "2025-06-18",
        capabilities: { tools: {}, odd: true },
        serverInfo: { name: "scripted" },
        instructions: "Be kind.",
      },
    });
  }
  if (method === "subscriptions/listen") {
    const _meta = { "io.modelcontextprotocol/subscriptionId": id };
    send({
      method: "notifications/subscriptions/acknowledged",
      params: { _meta, notifications: params.notifications },
    });
    listening.push(id);
    return;
  }
  if (method !== "tools/call") return send({ id, error: { code: -32601, message: "Method not found" } });
  const result = await TOOLS[params.name]?.(message);
  if (result?.error) send({ id, error: result.error });
  else if (params.arguments?.idAsText) send({ id: String(id), result });
  else if (result !== undefined) send({ id, result });
}

for await (const line of createInterface({ input: process.stdin })) if (line) void handle(JSON.parse(line));
process.exit(0);
