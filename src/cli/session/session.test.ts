import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { moduleOf, openProject } from "../../../test/command-project.ts";

const TOKEN = "0123456789abcdef-secret";
const project = openProject({
  "shop.mjs": moduleOf("shop.hello"),
  "waybill.config.json": {
    operations: "shop.mjs",
    serve: { port: 0, auth: { tokens: { ada: { token: TOKEN } } } },
  },
});
afterAll(() => project.remove());

describe("a gateway that was named", () => {
  it("says of a token that it was refused and where it came from, and without one how to give it", async () => {
    const { url, stop } = await project.serve();
    const list = async (env: NodeJS.ProcessEnv, ...more: string[]) =>
      (await project.run(["list", "--url", url, ...more], { env })).err;
    const wrong = "wrong-token-0123456789";
    expect(await list({})).toContain(
      "answered 401. Name the variable that holds a token with --token-env NAME.",
    );
    const refused = await list({ WAYBILL_TOKEN: wrong });
    expect(refused).toContain("answered 401. The token in WAYBILL_TOKEN was refused: it is wrong, expired");
    expect(refused).not.toContain("Name the variable");
    expect(refused).not.toContain(wrong);
    expect(await list({ MINE: wrong }, "--token-env", "MINE")).toContain("The token in MINE was refused");
    expect(await list({ MINE: TOKEN }, "--token-env", "MINE")).toBe("");
    await stop();
  });

  it("is told in one sentence where nobody answers, and where it is none", async () => {
    const server = createServer((_, response) => response.writeHead(404).end("none"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const call = (url: string) => project.run(["call", "shop.hello", "--url", url]);
    expect(await call(`${address}/mcp`)).toEqual({
      code: 3,
      out: "",
      err: `waybill: What answers at ${address} is no gateway that serves HTTP.\n`,
    });
    await new Promise((resolve) => server.close(resolve));
    expect(await call(`${address}/mcp`)).toEqual({
      code: 3,
      out: "",
      err: `waybill: No gateway answers at ${address}; "waybill serve" starts one.\n`,
    });
  });

  it("names a document that cannot be had once", async () => {
    const { err } = await project.run(["list", "--openapi", "http://127.0.0.1:1/a.json?key=1"]);
    expect(err).toBe(
      "waybill: The document http://127.0.0.1:1/a.json cannot be read: 127.0.0.1:1 cannot be reached.\n",
    );
  });
});
