// @ts-check
// Everything the official MCP conformance suite asks a server for, on the public API alone. It serves with `--port 3000` or
// `--stdio`, and with `--session-key` as one of several, which share their tasks where `--nats` names a broker; without a port it starts on a free port and asks itself a few questions.
import assert from "node:assert/strict";
import { parseArgs } from "node:util";
import { OperationRegistry, Tasks } from "waybill";
import { createGateway, loadConfigObject } from "waybill/gateway";
import { fromMcp, serveMcpHttp, serveStdio, toMcpServer } from "waybill/mcp";
import { OFFERS } from "./mcp-conformance/offers.js";
import { addQuestions } from "./mcp-conformance/questions.js";
import { IMAGE } from "./mcp-conformance/red-pixel.js";
import { addTasks, ONLY_TASKS } from "./mcp-conformance/tasks.js";
import { addTools } from "./mcp-conformance/tools.js";

const registry = new OperationRegistry();
addTools(registry);
addQuestions(registry);
addTasks(registry);
const flag = /** @type {const} */ ({ type: "string" });
const { values } = parseArgs({
  options: { port: flag, stdio: { type: "boolean" }, "session-key": flag, nats: flag },
});
const shared = values.nats === undefined ? undefined : await shareTasks(values.nats);
const tasks = shared?.tasks ?? new Tasks();
const server = toMcpServer(registry, {
  name: "waybill-conformance",
  version: "1.0.0",
  names: { prefix: false },
  tasks,
  taskSupportOf: (id) => (ONLY_TASKS.includes(id) ? "required" : "optional"),
  sessionKey: values["session-key"],
  ...OFFERS,
});

if (values.stdio) {
  await serveStdio(server).closed;
} else {
  const listening = await serveMcpHttp(server, { port: Number(values.port ?? 0) });
  if (values.port === undefined) {
    const source = await fromMcp(listening.url, { namespace: "self" });
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
    await tasks.close();
  } else {
    console.log(listening.url);
    process.once("SIGTERM", () =>
      listening
        .close({ timeoutMs: 1_000 })
        .then(() => Promise.all([server.close(), tasks.close()]))
        .then(() => shared?.close()),
    );
  }
}

/** A gateway without operations, for the tasks that it keeps at the broker. @param {string} nats */
async function shareTasks(nats) {
  const name = "waybill-conformance";
  const loaded = await loadConfigObject({ name, bus: { nats }, state: { store: "nats" } }, { baseDir: "." });
  return await createGateway(loaded);
}
