import { rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { atEnd, loadedConfig, makeFolder, makeSource, reasonOf } from "../../../test/gateway-sources.ts";
import { endsInTime } from "../../../test/lateness.ts";
import { rejection, until } from "../../../test/make-operation.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";

async function listen(answer: RequestListener, port = 0): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
  atEnd(() => {
    server.closeAllConnections();
    return new Promise((done) => server.close(done));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function documentOf(...names: string[]): string {
  const paths = names.map((name) => [
    `/${name}`,
    { get: { operationId: name, responses: { 200: { description: "ok" } } } },
  ]);
  const info = { title: "Pets\u001b[31m", version: "1.2.3" };
  return JSON.stringify({ openapi: "3.1.0", info, paths: Object.fromEntries(paths) });
}

const json: RequestListener = (request, response) => {
  response.setHeader("content-type", "application/json");
  response.end(
    request.url?.startsWith("/openapi.json")
      ? documentOf("list")
      : JSON.stringify({ url: request.url, key: request.headers["x-key"] }),
  );
};

describe("an HTTP API as a source", () => {
  it("RE-30 is up with the operations of its document, which reach the API", async () => {
    const url = await listen(json);
    const folder = makeFolder({ "docs/api.json": documentOf("list", "show") });
    const api = { document: "./docs/api.json", baseUrl: url, headers: { "x-key": "k" } };
    const { source } = makeSource(loadedConfig({ openapi: { pets: api } }, { baseDir: folder }));
    await source.start();
    expect(source.state.status).toBe("up");
    expect(source.operations.map(({ id }) => id)).toEqual(["pets.list", "pets.show"]);
    // Schemas are not read before they are needed.
    const [first] = source.operations;
    expect(Object.getOwnPropertyDescriptor(first, "inputSchema")?.get).toBeTypeOf("function");
    const registry = new OperationRegistry();
    registry.registerAll(source);
    expect((await registry.execute("pets.show", {})).data).toEqual({ url: "/show", key: "k" });
    expect(source.report()).toMatchObject({
      kind: "openapi",
      target: "./docs/api.json",
      title: "Pets",
      version: "1.2.3",
    });
  });

  it("RE-30 follows its file when that changes, is replaced, breaks and is mended", async () => {
    const folder = makeFolder({ "api.json": documentOf("one") });
    const file = join(folder, "api.json");
    const warnings: string[] = [];
    const api = { document: file, baseUrl: "http://127.0.0.1:1" };
    const loaded = loadedConfig({ openapi: { pets: api } });
    const { source } = makeSource(loaded, { onWarning: (message) => warnings.push(message) });
    await source.start();
    const ids = () => source.operations.map(({ id }) => id);
    writeFileSync(file, documentOf("one", "two"));
    await vi.waitFor(() => expect(ids()).toEqual(["pets.one", "pets.two"]), 20_000);
    writeFileSync(file, "{ no");
    await vi.waitFor(() => expect(warnings.at(-1)).toContain("pets: Its document has changed"), 20_000);
    expect(ids()).toEqual(["pets.one", "pets.two"]);
    await source.retry();
    expect(source.state.status).toBe("up");
    expect(source.report().notes.at(-1)?.note).toContain("could not be listed again");
    rmSync(file);
    writeFileSync(file, documentOf("three"));
    await vi.waitFor(() => expect(ids()).toEqual(["pets.three"]), 20_000);
    await source.retry();
    expect(source.report().notes).toEqual([]);
  });

  it("RE-30 leaves its file alone where nobody wants it followed", async () => {
    const folder = makeFolder({ "api.json": documentOf("one") });
    const config = { openapi: { pets: { document: "api.json", baseUrl: "http://127.0.0.1:9" } } };
    const { source } = makeSource({ ...loadedConfig(config, { baseDir: folder }), watchDocuments: false });
    await source.start();
    writeFileSync(join(folder, "api.json"), documentOf("two"));
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(source.operations.map(({ id }) => id)).toEqual(["pets.one"]);
  });

  it("RE-30 is down while its document cannot be read, and comes up once it can", async () => {
    const folder = makeFolder();
    const api = { document: "later.json", baseUrl: "http://127.0.0.1:1" };
    const { source } = makeSource(loadedConfig({ openapi: { pets: api } }, { baseDir: folder }));
    await source.start();
    expect(reasonOf(source)).toContain("later.json");
    writeFileSync(join(folder, "later.json"), documentOf("one"));
    await vi.waitFor(() => expect(source.state.status).toBe("up"), 20_000);
    expect(source.operations.map(({ id }) => id)).toEqual(["pets.one"]);
  });

  it("RE-30 reads a document by its address, says who wants credentials, and shows none", async () => {
    const url = await listen(json);
    const secrets = new SecretMask();
    secrets.add("very-secret");
    const address = { document: `${url}/openapi.json?key=very-secret` };
    const { source } = makeSource(loadedConfig({ openapi: { pets: address } }, { secrets }));
    await source.start();
    expect(source.state.status).toBe("up");
    expect(source.report().target).toBe(`${url}/openapi.json`);
    const closed = await listen((_, response) => response.writeHead(401).end());
    const refused = makeSource(loadedConfig({ openapi: { pets: { document: `${closed}/x` } } }));
    await refused.source.start();
    expect(reasonOf(refused.source)).toMatch(/answered 401\. Set openapi\.pets\.auth or /);
  });

  it("RE-30 names the fields of the config, or the flag, that mend a refusal", async () => {
    const url = await listen((_, response) => response.writeHead(401).end());
    const openapi = { shop: { document: `${url}/openapi.json` } };
    const { source } = makeSource(loadedConfig({ openapi }));
    await source.start();
    expect(reasonOf(source)).toContain("answered 401. Set openapi.shop.auth or openapi.shop.headers.");
    const byFlag = makeSource(loadedConfig({ openapi }, { authHint: "Use --token-env NAME." }));
    await byFlag.source.start();
    expect(reasonOf(byFlag.source)).toContain("answered 401. Use --token-env NAME.");
    const document = { ...JSON.parse(documentOf("list")), servers: [{ url: "http://127.0.0.1:1" }] };
    const folder = makeFolder({ "api.json": JSON.stringify(document) });
    const private_ = makeSource(loadedConfig({ openapi: { shop: { document: join(folder, "api.json") } } }));
    await private_.source.start();
    const registry = new OperationRegistry();
    registry.registerAll(private_.source);
    expect(await rejection(registry.execute("shop.list", {}))).toMatchObject({
      code: "ACCESS_DENIED",
      message: expect.stringContaining("name it in openapi.shop.allowPrivate to call it there."),
    });
    const config = { openapi: { shop: { document: join(folder, "api.json") } } };
    const privateByFlag = makeSource(loadedConfig(config, { privateHint: "give --allow-private" }));
    await privateByFlag.source.start();
    const flagged = new OperationRegistry();
    flagged.registerAll(privateByFlag.source);
    expect(await rejection(flagged.execute("shop.list", {}))).toMatchObject({
      message: expect.stringContaining("address; give --allow-private to call it there."),
    });
  });

  it("RE-30 is not tried again where only another config can help, and closes while it waits", async () => {
    const wrong = makeSource(loadedConfig({ openapi: { pets: { document: "x.json", baseUrl: "ftp://x" } } }));
    await wrong.source.start();
    expect(reasonOf(wrong.source)).toContain("baseUrl must be an http or https URL");
    expect(wrong.source.state).not.toHaveProperty("retryAt");
    let asked = 0;
    const silent = await listen(() => {
      asked += 1;
    });
    const { source } = makeSource(loadedConfig({ openapi: { pets: { document: `${silent}/x` } } }));
    const started = source.start();
    await until(() => asked === 1);
    expect(await endsInTime(0, () => Promise.all([source.close(), started]), 1_000)).toBe(true);
  });
});
