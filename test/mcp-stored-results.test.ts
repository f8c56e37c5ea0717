import { describe, expect, it } from "vitest";
import { createMemoryStore, type ResultStore } from "../src/formats/index.ts";
import { OperationRegistry, toolError } from "../src/index.ts";
import { fromMcp, serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { query, stream } from "./make-operation.ts";
import { roundTripOperations, VALUES } from "./round-trip-operations.ts";

const operations = [
  ...roundTripOperations(),
  query("stored.refused", () => toolError({ rows: VALUES["rows"], at: new Date(1) }, { code: "NO" })),
  stream("stored.ticks", async function* () {
    for (let i = 0; i < 50; i++) yield { i };
  }),
];

interface Setting {
  readonly protocol: "2025" | "2026";
  readonly keepIds?: boolean;
  readonly store?: ResultStore;
}

/** Serves everything with a store that takes whatever is not empty, and imports it again. */
async function imported({ protocol, keepIds = true, store = createMemoryStore() }: Setting) {
  const server = toMcpServer(new OperationRegistry(operations), { store, limits: { inlineCharacters: 0 } });
  const http = await serveMcpHttp(server);
  const warnings: string[] = [];
  const onWarning = (message: string): void => void warnings.push(message);
  const source = await fromMcp(http.url, { namespace: "there", keepIds, protocol, onWarning });
  const registry = new OperationRegistry([...source]);
  const close = async (): Promise<void> => {
    await source.close();
    await http.close();
    await server.close();
  };
  return { registry, warnings, close };
}

describe.each(["2025", "2026"] as const)("what a server of %s keeps in its store", (protocol) => {
  it.each([true, false])(
    "X-6 RE-30 is the data again for whoever imports it (keepIds %s)",
    async (keepIds) => {
      const { registry, warnings, close } = await imported({ protocol, keepIds });
      const id = keepIds ? "value.give" : "there.value_give";
      for (const [name, value] of Object.entries(VALUES)) {
        const { data } = await registry.execute(id, { name });
        expect(data, name).toStrictEqual(value);
      }
      expect(warnings).toEqual([]);
      await close();
    },
  );

  it("X-6 is the data of an error again", async () => {
    const { registry, close } = await imported({ protocol });
    const { data, meta } = await registry.execute("stored.refused");
    expect(data).toStrictEqual({ rows: VALUES["rows"], at: new Date(1) });
    expect(meta).toMatchObject({ isError: true, waybill: { code: "NO" } });
    await close();
  });

  it("RE-30 is all values of a subscription that is called as a tool", async () => {
    const { registry, close } = await imported({ protocol, keepIds: false });
    const { data } = await registry.execute("there.stored_ticks", {});
    expect(data).toMatchObject({ count: 50, truncated: false });
    expect((data as { items: unknown[] }).items).toHaveLength(50);
    await close();
  });

  it("RE-30 leaves the preview where it is gone, and says so", async () => {
    const store = createMemoryStore();
    const forgetful: ResultStore = { put: (entry) => store.put(entry), read: () => undefined };
    const { registry, warnings, close } = await imported({ protocol, store: forgetful });
    const { data, meta } = await registry.execute("value.give", { name: "rows" });
    expect(data).toContainEqual(expect.objectContaining({ type: "resource_link" }));
    expect(meta).toMatchObject({
      waybill: { obtained: "content" },
      _meta: { "dev.waybill/result": { stored: expect.any(String) } },
    });
    expect(warnings).toEqual([expect.stringContaining('"value_give" sent a preview')]);
    await close();
  });
});
