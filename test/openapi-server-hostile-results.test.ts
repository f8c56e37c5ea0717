import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OperationRegistry } from "../src/index.ts";
import { type HttpServer, serveHttp } from "../src/openapi/index.ts";
import { query } from "./make-operation.ts";

interface Row {
  readonly children: object[];
}

describe("what a handler or a client may do to the server", () => {
  let http: HttpServer;
  beforeAll(async () => {
    const family = query("tree.family", () => {
      const parent: Row = { children: [] };
      for (let n = 0; n < 3; n++) parent.children.push({ parent });
      return parent;
    });
    const size = query("tree.size", (input) => String(input).length);
    http = await serveHttp(new OperationRegistry([family, size]), { onWarning() {} });
  });
  afterAll(() => http.close());

  it("RE-30 answers at once that rows which know their parents cannot be written", async () => {
    const response = await fetch(`${http.url}/api/tree/family`, { method: "POST" });
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
      500,
      "OUTPUT_INVALID",
    ]);
  });

  it("RE-30 takes a body that comes byte by byte", async () => {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { "content-type": "application/json", "transfer-encoding": "chunked" };
      const sent = request(`${http.url}/api/tree/size`, { method: "POST", headers }, (response) => {
        response.resume().on("end", () => resolve(response.statusCode));
      }).on("error", reject);
      const chunk = "1\r\na\r\n".repeat(1_000);
      sent.on("socket", (socket) => {
        sent.flushHeaders();
        socket.write('1\r\n"\r\n');
        for (let n = 0; n < 300; n++) socket.write(chunk);
        socket.write('1\r\n"\r\n0\r\n\r\n');
      });
    });
    expect(status).toBe(200);
  });
});
