import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { toCallError } from "../../core/errors/errors.ts";
import { type HttpListener, listenHttp } from "../../http/listen.ts";
import { findPageFolder, PageServer, readPageFiles } from "./page-server.ts";

let root: string;
let server: HttpListener;
let url: string;
const HTML = `<!doctype html>${"<p>word</p>".repeat(200)}`;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "waybill-page-"));
  mkdirSync(join(root, "inspector/assets"), { recursive: true });
  writeFileSync(join(root, "inspector/index.html"), HTML);
  writeFileSync(join(root, "inspector/icon.svg"), "<svg/>");
  writeFileSync(join(root, "inspector/assets/index-Ab12Cd34.js"), "export const a = 1;");
  writeFileSync(join(root, "secret.txt"), "nobody is to see this");
  symlinkSync(join(root, "secret.txt"), join(root, "inspector/link.txt"));
  const page = new PageServer(() => findPageFolder(pathToFileURL(join(root, "cli.js")).href));
  server = await listenHttp({
    onRequest(asked) {
      page.send(asked.message.url ?? "", asked).catch((thrown) => {
        asked.response.writeHead(toCallError(thrown).httpStatus).end(toCallError(thrown).message);
      });
    },
    onClose: async () => {},
  });
  url = server.origin;
});

afterEach(async () => {
  await server.close({ timeoutMs: 0 });
  rmSync(root, { recursive: true });
});

/** Sends a path as it is. */
function get(path: string, headers: Record<string, string> = {}) {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>(
    (resolve, reject) => {
      const { port } = new URL(url);
      request({ host: "127.0.0.1", port, path, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => void chunks.push(chunk));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks),
          }),
        );
      })
        .on("error", reject)
        .end();
    },
  );
}

describe("the files of the page", () => {
  it("are sent with their type, and kept for as long as their name says what they hold", async () => {
    const page = await get("/");
    expect(page.body.toString()).toBe(HTML);
    expect(page.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
    });
    const script = await get("/assets/index-Ab12Cd34.js");
    expect(script.headers).toMatchObject({
      "content-type": "text/javascript; charset=utf-8",
      "cache-control": "public, max-age=31536000, immutable",
      "x-content-type-options": "nosniff",
    });
    expect((await get("/icon.svg")).headers["content-type"]).toBe("image/svg+xml");
  });

  it("are compressed for those who take it", async () => {
    const zipped = await get("/", { "accept-encoding": "br;q=0, gzip;q=0.8" });
    expect(zipped.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(zipped.body).toString()).toBe(HTML);
    const shortest = await get("/", { "accept-encoding": "gzip, deflate, br, zstd" });
    expect(shortest.headers["content-encoding"]).toBe("br");
    expect(brotliDecompressSync(shortest.body).toString()).toBe(HTML);
    expect((await get("/", { "accept-encoding": "gzip;q=0" })).headers).not.toHaveProperty(
      "content-encoding",
    );
    expect((await get("/", { "accept-encoding": "x-gzip" })).headers).not.toHaveProperty("content-encoding");
    const begun = cpuMs();
    await get("/", { "accept-encoding": `gzip;q=.${"1".repeat(12_000)}x` });
    expect(cpuMs() - begun).toBeLessThan(2_000);
  });

  it.each([
    "/../secret.txt",
    "/..%2fsecret.txt",
    "/assets/../../secret.txt",
    "/%2e%2e/secret.txt",
    "//secret.txt",
    "/link.txt",
    "/assets",
    "/assets/",
    "/index.html/",
    "/index.html%00.js",
    "/__proto__",
    "/..\\secret.txt",
  ])("are all that is sent: not %s", async (path) => {
    expect((await get(path)).status).toBe(404);
  });

  it("can only be read", async () => {
    expect((await fetch(`${url}/`, { method: "POST" })).status).toBe(405);
    expect(await (await fetch(`${url}/`, { method: "HEAD" })).text()).toBe("");
  });

  it("are found beside the code wherever it was put, and missed where they were not built", async () => {
    const here = (path: string) => pathToFileURL(join(root, path)).href;
    expect(findPageFolder(here("chunks/inspector-x.js"))).toBe(join(root, "inspector/"));
    expect(findPageFolder(here("elsewhere/deep/x.js"))).toBeUndefined();
    expect([...(await readPageFiles(join(root, "inspector/"))).keys()].sort()).toEqual([
      "",
      "assets/index-Ab12Cd34.js",
      "icon.svg",
    ]);
    rmSync(join(root, "inspector/index.html"));
    const missing = await get("/");
    expect([missing.status, missing.body.toString()]).toEqual([
      503,
      expect.stringContaining("npm run build"),
    ]);
  });
});
