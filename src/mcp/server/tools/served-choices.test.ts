import { afterEach, describe, expect, it } from "vitest";
import { query } from "../../../../test/make-operation.ts";
import { CLIENTS } from "../../../../test/mcp-server-peers.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import type { ResultFormat } from "../../../core/result/result-reader.ts";
import { createMemoryStore, createResultFormat } from "../../../formats/index.ts";
import { IDEMPOTENCY_META_KEY } from "../../names.ts";
import type { McpClient, McpServerOptions } from "../mcp-server-options.ts";
import { toMcpServer } from "../to-mcp-server.ts";
import { FORMAT_META_KEY } from "./served-tools.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

const metadata: unknown[] = [];
const registry = new OperationRegistry([
  query("files.read", () => ({ text: "x".repeat(50) })),
  query("files.stat", (_, context) => {
    metadata.push(context.metadata);
    return { text: "x".repeat(50) };
  }),
]);

const subject = "ann";
const tool = { name: "files_read", arguments: {} };

describe.each(Object.entries(CLIENTS))("%s", (_, connect) => {
  async function clientOf(options: McpServerOptions) {
    const server = toMcpServer(registry, options);
    const client = await connect(server, { identity: { subject } });
    open.push(server, client);
    return client;
  }

  it("RE-30 writes in the format chosen for a client by its name and identity, unless it asks", async () => {
    const seen: McpClient[] = [];
    let chosen: string | undefined = "tool-envelope";
    let formats: readonly ResultFormat[] = [createResultFormat("tool-envelope")];
    const client = await clientOf({
      formats: () => formats,
      formatOf: (one) => {
        seen.push(one);
        return chosen;
      },
    });
    const format = async (meta?: Record<string, unknown>) => {
      const { content } = (await client.callTool({ ...tool, ...(meta && { _meta: meta }) })) as {
        content: { text: string }[];
      };
      return content.some(({ text }) => text.startsWith("__ENVELOPE_V1__")) ? "envelope" : "plain";
    };
    expect(await format()).toBe("envelope");
    expect(seen[0]).toMatchObject({ name: "peer", identity: { subject } });
    expect(await format({ [FORMAT_META_KEY]: "plain" })).toBe("plain");
    chosen = "odd";
    expect(await format()).toBe("plain");
    chosen = undefined;
    expect(await format()).toBe("plain");
    chosen = "tool-envelope";
    formats = [];
    expect(await format()).toBe("plain");
    await expect(format({ [FORMAT_META_KEY]: "tool-envelope" })).rejects.toThrow("There is no format");
  });

  it("RE-30 cuts the results of each operation at its own bound", async () => {
    const store = createMemoryStore();
    const length = JSON.stringify({ text: "x".repeat(50) }).length;
    const bounds = new Map([
      ["files.read", length],
      ["files.stat", length - 1],
    ]);
    const client = await clientOf({ store, inlineCharactersOf: (id) => bounds.get(id) });
    const links = async (name: string) => {
      const { content } = (await client.callTool({ name, arguments: {} })) as { content: { type: string }[] };
      return content.filter(({ type }) => type === "resource_link").length;
    };
    expect([await links("files_read"), await links("files_stat")]).toEqual([0, 1]);
  });

  it("RE-30 passes an idempotency key on, and refuses one that is none", async () => {
    metadata.length = 0;
    const client = await clientOf({});
    const send = (key: unknown) =>
      client.callTool({ name: "files_stat", arguments: {}, _meta: { [IDEMPOTENCY_META_KEY]: key } });
    await send("k".repeat(255));
    expect(metadata).toEqual([expect.objectContaining({ idempotencyKey: "k".repeat(255) })]);
    for (const key of ["", "k".repeat(256), 5, null, "a\nb"]) {
      await expect(send(key)).rejects.toThrow("must be 1 to 255 printable characters");
    }
    expect(metadata).toHaveLength(1);
  });

  it("RE-30 says why a tool is not there where that is known, as a result", async () => {
    const client = await clientOf({
      explainMissing: (name) =>
        name.startsWith("mail_") ? new CallError("UNAVAILABLE", "The source is down.") : undefined,
    });
    const result = await client.callTool({ name: "mail_send", arguments: {} });
    expect(result).toMatchObject({ isError: true });
    expect(JSON.stringify(result.content)).toContain("The source is down.");
    await expect(client.callTool({ name: "post_send", arguments: {} })).rejects.toThrow("Unknown tool");
  });
});

describe("options of choices", () => {
  it.each(["formatOf", "inlineCharactersOf", "explainMissing"])("RE-30 %s must be a function", (name) => {
    const options = { [name]: "x" } as McpServerOptions;
    expect(() => toMcpServer(registry, options)).toThrow(`${name} must be a function; it is of type string.`);
  });

  it("RE-30 refuses formats that are none, also those that are read later", () => {
    const formats = () => ["x"] as never;
    expect(() => toMcpServer(registry, { formats })).toThrow("formats[0] must be");
  });
});
