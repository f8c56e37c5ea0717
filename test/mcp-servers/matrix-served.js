// What the SDKs' clients are tried on: tools of ours that answer, refuse, report progress and wait, a resource and a prompt. Started as a
// program it is on standard input and output, made of the built package.

/** Serves them with these parts of the package. */
export function matrixServed({ defineOperation, OperationRegistry, toMcpServer, toolError, Type }) {
  let cancelled = 0;
  let release = () => {};
  const released = new Promise((resolve) => {
    release = resolve;
  });
  const define = (name, handler, extra) =>
    defineOperation({
      namespace: "m",
      name,
      version: "1.0.0",
      type: "mutation",
      description: "",
      handler,
      ...extra,
    });
  const operations = [
    define("echo", ({ text }) => ({ said: `echo ${text}` }), {
      inputSchema: Type.Object({ text: Type.String() }),
      outputSchema: Type.Object({ said: Type.String() }),
    }),
    define("fail", () => toolError(null, { code: "NO", message: "It will not." })),
    define("steps", async (_, { progress }) => {
      for (const step of [1, 2, 3]) progress({ progress: step, total: 3 });
      await released;
      return "three steps";
    }),
    define("release", () => release()),
    define("hang", async (_, { progress, signal }) => {
      progress({ progress: 1 });
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      cancelled += 1;
    }),
    define("cancelled", () => cancelled),
  ];
  return toMcpServer(new OperationRegistry(operations), {
    resources: [{ uri: "memo://one", name: "one", mimeType: "text/plain", read: () => "the memo" }],
    prompts: [
      { name: "greet", arguments: [{ name: "who", required: true }], get: ({ who }) => `Greet ${who}.` },
    ],
  });
}

if (process.argv[1] === import.meta.filename) {
  const [core, mcp] = await Promise.all([import("waybill"), import("waybill/mcp")]);
  mcp.serveStdio(matrixServed({ ...core, ...mcp }));
}
