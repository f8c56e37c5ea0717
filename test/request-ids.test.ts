import { describe, expect, it } from "vitest";
import {
  type CallToolResult,
  createResultFormat,
  createToolCaller,
  decodeToolResult,
  parseEnvelopeBlock,
} from "../src/formats/index.ts";
import { defineOperation, OperationRegistry, toolError } from "../src/index.ts";
import { toMcpServer } from "../src/mcp/index.ts";
import { serveHttp } from "../src/openapi/index.ts";
import { CLIENTS } from "./mcp-server-peers.ts";
import { SURFACES } from "./surfaces.ts";

const seen: string[] = [];
const registry = new OperationRegistry([
  defineOperation({
    namespace: "shop",
    name: "asks",
    version: "2.1.0",
    type: "query",
    description: "Remembers the request id.",
    handler: (input, { requestId }) => {
      seen.push(requestId);
      return input === undefined ? requestId : toolError(requestId, { code: "NO" });
    },
  }),
]);

const FORMATS = ["tool-envelope", "tiered-envelope", "status-envelope", "mcp"] as const;
const HEX = /^[0-9a-f]{32}$/;

describe.each(Object.entries(CLIENTS))("a request id over MCP, %s", (_, connect) => {
  const call = async (meta: Readonly<Record<string, unknown>>, format?: string): Promise<CallToolResult> => {
    const server = toMcpServer(registry, { formats: FORMATS.map((name) => createResultFormat(name)) });
    const client = await connect(server);
    const _meta = { ...meta, ...(format !== undefined && { "dev.waybill/format": format }) };
    const result = await client.callTool({ name: "shop_asks", _meta });
    await client.close();
    await server.close();
    return result as CallToolResult;
  };

  it.each(["dev.waybill/requestId", "requestId", "request_id", "correlation_id"])(
    "X-9 is taken from %s and echoed",
    async (key) => {
      const result = await call({ [key]: "abc-1" });
      expect(seen.at(-1)).toBe("abc-1");
      expect(result._meta).toMatchObject({ "dev.waybill/requestId": "abc-1" });
    },
  );

  it("X-9 is that of the first key that holds one", async () => {
    await call({ correlation_id: "last", requestId: "second", "dev.waybill/requestId": "a b" });
    expect(seen.at(-1)).toBe("second");
  });

  it.each([["x".repeat(201)], ["two words"], [""], [5], ["é"]])(
    "X-9 is made where %j is given",
    async (given) => {
      const result = await call({ requestId: given });
      expect(seen.at(-1)).toMatch(HEX);
      expect(result._meta ?? {}).not.toHaveProperty("dev.waybill/requestId");
    },
  );

  it("X-9 may have 200 characters", async () => {
    await call({ requestId: "x".repeat(200) });
    expect(seen.at(-1)).toHaveLength(200);
  });

  it.each(FORMATS)("X-9 CS-3 comes back in %s, with the name the tool was called by", async (format) => {
    const carrier = await call({ request_id: "r-7" }, format);
    const { result } = decodeToolResult(carrier);
    expect(result).toMatchObject({ requestId: "r-7", tool: "shop_asks" });
    if (format === "tiered-envelope") {
      expect(carrier.structuredContent).toMatchObject({ request_id: "r-7", tool_id: "shop_asks" });
    }
    if (format === "tool-envelope") {
      const block = carrier.content[1] as { text: string };
      expect(parseEnvelopeBlock(block.text).meta.tool).toBe("shop_asks");
    }
  });
});

describe("a request id elsewhere", () => {
  it.each(Object.keys(SURFACES))("X-9 goes along over %s", async (name) => {
    const surface = await SURFACES[name]?.(registry);
    try {
      const envelope = await surface?.executor.execute("shop.asks", undefined, { requestId: "caller-1" });
      expect(envelope?.data).toBe("caller-1");
      await surface?.executor.execute("shop.asks");
      expect(seen.at(-1)).toMatch(HEX);
    } finally {
      await surface?.close();
    }
  });

  it.each(FORMATS)(
    "X-9 comes back over HTTP in %s, with the id the operation was called by",
    async (format) => {
      const http = await serveHttp(registry, { formats: [createResultFormat(format)] });
      const response = await fetch(`${http.url}/call`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: `application/vnd.waybill.${format}+json`,
          "x-request-id": "web-1",
        },
        body: JSON.stringify({ operation: "shop.asks" }),
      });
      expect(response.headers.get("x-request-id")).toBe("web-1");
      const { result } = decodeToolResult(await response.json());
      expect(result).toMatchObject({ requestId: "web-1", tool: "shop.asks" });
      await http.close();
    },
  );

  it("X-9 CS-3 is 32 hex digits where nobody gave one", async () => {
    const call = createToolCaller(registry, { format: "tiered-envelope" });
    const { structuredContent } = await call("shop.asks");
    expect(structuredContent).toMatchObject({ request_id: expect.stringMatching(HEX) });
  });
});
