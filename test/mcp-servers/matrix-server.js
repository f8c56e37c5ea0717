// The same server of any SDK: tools that answer, refuse, report progress and wait, a resource and a prompt. Started as a program it is
// on standard input and output; the argument names the package of the SDK.
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";

const INFO = { name: "matrix", version: "1.0.0" };
const CAPABILITIES = { tools: {}, resources: {}, prompts: {} };
const METHODS = {
  "tools/list": "ListToolsRequestSchema",
  "tools/call": "CallToolRequestSchema",
  "resources/list": "ListResourcesRequestSchema",
  "resources/read": "ReadResourceRequestSchema",
  "prompts/list": "ListPromptsRequestSchema",
  "prompts/get": "GetPromptRequestSchema",
};

const text = (value) => ({ content: [{ type: "text", text: value }] });

/** What the server answers; how many calls were cancelled is known to all servers that share the answers. */
export function matrixAnswers() {
  let cancelled = 0;
  let release = () => {};
  const released = new Promise((resolve) => {
    release = resolve;
  });
  const tools = {
    echo: ({ text: said }) => text(`echo ${said}`),
    fail: () => ({ ...text("It will not."), isError: true }),
    steps: async (_, { progress }) => {
      for (const step of [1, 2, 3]) await progress({ progress: step, total: 3 });
      await released;
      return text("three steps");
    },
    release: () => {
      release();
      return text("released");
    },
    hang: async (_, { progress, signal }) => {
      await progress({ progress: 1 });
      await new Promise((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener("abort", resolve);
      });
      cancelled += 1;
      return text("cancelled");
    },
    cancelled: () => text(String(cancelled)),
  };
  return {
    "tools/list": () => ({
      tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: "object" } })),
    }),
    "tools/call": ({ name, arguments: args = {} }, context) => tools[name](args, context),
    "resources/list": () => ({ resources: [{ uri: "memo://one", name: "one" }] }),
    "resources/read": ({ uri }) => ({ contents: [{ uri, mimeType: "text/plain", text: "the memo" }] }),
    "prompts/list": () => ({ prompts: [{ name: "greet", arguments: [{ name: "who", required: true }] }] }),
    "prompts/get": ({ arguments: { who } }) => ({
      messages: [{ role: "user", content: { type: "text", text: `Greet ${who}.` } }],
    }),
  };
}

/** Makes a server of a first SDK. */
export async function createFirst(sdk, answers) {
  const [{ Server }, schemas] = await Promise.all([
    import(`${sdk}/server/index.js`),
    import(`${sdk}/types.js`),
  ]);
  const jsonSchemaValidator = new CfWorkerJsonSchemaValidator();
  const server = new Server(INFO, { capabilities: CAPABILITIES, jsonSchemaValidator });
  for (const [method, schema] of Object.entries(METHODS)) {
    server.setRequestHandler(schemas[schema], ({ params }, { signal, sendNotification }) => {
      // The earliest has no way to say which request a notification belongs to.
      const notify = sendNotification ?? ((notification) => server.notification(notification));
      return answers[method](params ?? {}, { signal, progress: toProgress(params, notify) });
    });
  }
  return server;
}

/** Makes a server of the second SDK. */
export async function createSecond(answers) {
  const { Server } = await import("@modelcontextprotocol/server");
  const jsonSchemaValidator = new CfWorkerJsonSchemaValidator();
  const server = new Server(INFO, { capabilities: CAPABILITIES, jsonSchemaValidator });
  for (const method of Object.keys(METHODS)) {
    server.setRequestHandler(method, ({ params }, { mcpReq }) => {
      const notify = (notification) => mcpReq.notify(notification);
      const progress = toProgress({ _meta: mcpReq._meta ?? params?._meta }, notify);
      return answers[method](params ?? {}, { signal: mcpReq.signal, progress });
    });
  }
  return server;
}

function toProgress(params, notify) {
  const progressToken = params?._meta?.progressToken;
  return async (progress) => {
    if (progressToken === undefined) return;
    await notify({ method: "notifications/progress", params: { ...progress, progressToken } });
  };
}

if (process.argv[1] === import.meta.filename) {
  const sdk = process.argv[2];
  const answers = matrixAnswers();
  if (sdk === "@modelcontextprotocol/server") {
    const { serveStdio } = await import("@modelcontextprotocol/server/stdio");
    serveStdio(() => createSecond(answers));
  } else {
    const { StdioServerTransport } = await import(`${sdk}/server/stdio.js`);
    await (await createFirst(sdk, answers)).connect(new StdioServerTransport());
  }
}
