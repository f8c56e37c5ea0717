import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { describe, expect, it } from "vitest";
import { runNode } from "../../test/run-node.ts";

/** Everything stays open: the map, the bus, a stream that was left, deadlines that lie far ahead. */
const IDLE = `
const { createMemoryBus, createMemoryTransport, createWireBus, PendingRequestMap } = await import(process.argv[1]);
const { localEnvelope } = await import(process.argv[2]);
const answer = ({ request }, line) => {
  const { requestId, operationId } = request;
  queueMicrotask(() => line.reply({ type: "call.responded", requestId, output: localEnvelope(1, operationId) }));
  return { receive() {}, lost() {} };
};
for (const bus of [createMemoryBus(), createWireBus(createMemoryTransport())]) {
  await bus.join({ operationId: "a.b" }, answer);
  const map = new PendingRequestMap(bus);
  for (let n = 0; n < 10; n++) console.log((await map.call("a.b", n, { timeoutMs: 290_000 + n * 1_000 })).data);
}
console.log("idle");
`;

describe("an idle process", () => {
  it("Call: ends although its buses and maps are open", async () => {
    const folder = mkdtempSync(join(tmpdir(), "waybill-idle-"));
    try {
      const parts = ["index.ts", "../core/envelope/envelope.ts"].map(
        (path) => new URL(path, import.meta.url),
      );
      const files = parts.map((_, n) => join(folder, `${n}.mjs`));
      for (const [n, part] of parts.entries()) {
        const bundle = await rolldown({ input: fileURLToPath(part), platform: "node", logLevel: "silent" });
        await bundle.write({ file: files[n] as string, format: "esm", codeSplitting: false });
      }
      const urls = files.map((file) => pathToFileURL(file).href);
      // One that waited for its deadlines would take longer than the test may.
      const ran = await runNode(["--input-type=module", "-e", IDLE, ...urls]);
      expect(ran).toMatchObject({ code: 0, stderr: "", stdout: `${"1\n".repeat(20)}idle\n` });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
