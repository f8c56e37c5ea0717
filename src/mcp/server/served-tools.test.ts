import { describe, expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { errorOf, modern } from "../../../test/mcp-requests.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { createMcpHandler } from "./http-handler.ts";
import { FORMAT_META_KEY, readLimits } from "./served-tools.ts";
import { toMcpServer } from "./to-mcp-server.ts";

async function askFor(format: unknown): Promise<{ code: number; message: string }> {
  const handler = createMcpHandler(toMcpServer(new OperationRegistry([query("a.b", () => 1)])));
  const template = modern("tools/list");
  const body = (await template.json()) as { params: { _meta: Record<string, unknown> } };
  body.params._meta[FORMAT_META_KEY] = format;
  const { headers } = template;
  headers.delete("content-length");
  const request = new Request(template.url, { method: "POST", headers, body: JSON.stringify(body) });
  const response = await handler.fetch(request);
  const { message } = ((await response.clone().json()) as { error: { message: string } }).error;
  return { code: (await errorOf(response)).code, message };
}

describe("serveTools", () => {
  it("Mcp: says which formats there are to a client that asks for another", async () => {
    expect(await askFor("odd")).toEqual({ code: -32_602, message: expect.stringContaining('"odd"') });
    expect((await askFor("odd")).message).toContain("plain");
  });

  it.each<[unknown]>([[5], [null], [["plain"]], [{ toString: 1 }], [{ toString: 1, valueOf: 1 }]])(
    "X-6 says the same of a format that is not even a name: %j",
    async (format) => {
      expect(await askFor(format)).toEqual({ code: -32_602, message: expect.stringContaining("plain") });
    },
  );
});

describe("readLimits", () => {
  it("Mcp: takes every bound from its least on, and nothing below", () => {
    expect(readLimits({ pageSize: 1, waitingCalls: 0 })).toMatchObject({ pageSize: 1, waitingCalls: 0 });
    for (const limits of [
      { pageSize: 0 },
      { waitingCalls: -1 },
      { waitingMs: 2 ** 31 },
      { streamItems: 0.5 },
    ]) {
      expect(() => readLimits(limits)).toThrow(TypeError);
    }
  });
});
