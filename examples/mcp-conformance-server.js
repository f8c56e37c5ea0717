// @ts-check
// Everything the official MCP conformance suite asks a server for, on the public API alone. It serves with `--port 3000` or
// `--stdio`; without either it starts on a free port and asks itself a few questions.
import assert from "node:assert/strict";
import { parseArgs } from "node:util";
import { OperationRegistry } from "waybill";
import { fromMcp, serveMcpHttp, serveStdio, toMcpServer } from "waybill/mcp";
import { OFFERS } from "./mcp-conformance/offers.js";
import { addQuestions } from "./mcp-conformance/questions.js";
import { IMAGE } from "./mcp-conformance/red-pixel.js";
import { addTools } from "./mcp-conformance/tools.js";

const registry = new OperationRegistry();
addTools(registry);
addQuestions(registry);
const server = toMcpServer(registry, {
  name: "waybill-conformance",
  version: "1.0.0",
  names: { prefix: false },
  ...OFFERS,
});

const { values } = parseArgs({ options: { port: { type: "string" }, stdio: { type: "boolean" } } });
if (values.stdio) {
  await serveStdio(server).closed;
} else {
  const listening = await serveMcpHttp(server, { port: Number(values.port ?? 0) });
  if (values.port === undefined) {
    const source = await fromMcp({ namespace: "self", url: listening.url });
    console.log([...source.operations].length, "tools");
    const { data } = await source.call("test_simple_text", {});
    assert.equal(data, "This is a simple text response for testing.");
    const image = await source.call("test_image_content", {});
    assert.deepEqual(image.data, [IMAGE]);
    assert.equal((await source.call("test_error_handling", {})).meta.isError, true);
    const prompts = await source.listPrompts();
    assert.ok(prompts.some(({ name }) => name === "test_simple_prompt"));
    await source.close();
    await listening.close();
    await server.close();
  } else {
    console.log(listening.url);
    process.once("SIGTERM", () => listening.close({ timeoutMs: 1_000 }).then(() => server.close()));
  }
}
