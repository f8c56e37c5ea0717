import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { expect, it, onTestFinished } from "vitest";
import { ROOT, runNode } from "./run-node.ts";

it("RE-25 lets the process end once it is closed, whatever was going on", async () => {
  const folder = await mkdtemp(join(tmpdir(), "transport-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "transport.mjs");
  const input = join(ROOT, "src/openapi/client/transport/create-transport.ts");
  const bundle = await rolldown({ input, platform: "node", logLevel: "silent" });
  await bundle.write({ file, format: "esm", codeSplitting: false });
  await bundle.close();
  const script = `
    import { createServer } from "node:http";
    import { createTransport } from ${JSON.stringify(pathToFileURL(file).href)};
    const server = createServer((request, response) => {
      if (request.url === "/ok") response.end("ok");
      else response.write("one");
    });
    server.listen(0, "127.0.0.1", async () => {
      const transport = createTransport({ trusted: ["127.0.0.1:*"] });
      const origin = "http://127.0.0.1:" + server.address().port;
      const options = { signal: new AbortController().signal, repeatable: true };
      const request = { method: "GET", origin, path: "/ok", headers: {}, body: undefined };
      await transport.send(request, options);
      transport.send({ ...request, path: "/hangs" }, options).catch((error) => console.log(error.code));
      await transport.stream({ ...request, path: "/stream" }, options);
      server.close();
      await transport.close();
    });
  `;
  const { code, stdout, stderr } = await runNode(["--input-type=module", "--eval", script]);
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "UNAVAILABLE\n", stderr: "" });
});
