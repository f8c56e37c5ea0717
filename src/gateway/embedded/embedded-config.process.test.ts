import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { fromMcp, type McpSource } from "../../mcp/index.ts";
import { openEmbedded } from "./embedded-config.ts";

describe("the depot", () => {
  async function openDepot(): Promise<McpSource> {
    const folder = await mkdtemp(join(tmpdir(), "waybill-embedded-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const only = (name: string): boolean => name === "depot";
    const embedded = await openEmbedded({ env: { WAYBILL_STATE_DIR: folder }, only });
    onTestFinished(() => embedded.close());
    const { loaded } = embedded;
    const { command = "", args = [], recoverJson = false } = loaded.config.mcpServers?.["depot"] ?? {};
    const source = await fromMcp({ command, args }, { namespace: "depot", recoverJson });
    onTestFinished(() => source.close());
    return source;
  }

  it("is an MCP server in a process of its own", async () => {
    const depot = await openDepot();
    expect(depot.operations.map(({ id, type }) => `${id} ${type}`).sort()).toEqual([
      "depot.label query",
      "depot.stock query",
      "depot.take mutation",
    ]);
    const stock = await depot.call("stock", { item: "tape" });
    expect(stock.data).toEqual({ stock: [{ item: "tape", boxes: 300, shelf: "B1" }] });
    expect(stock.meta.waybill?.obtained).toBe("structured-content");
    const label = await depot.call("label", { id: "P-1001", to: "Lisbon" });
    expect(label.data).toEqual({ id: "P-1001", lines: ["P-1001", "LISBON"], barcode: "*P-1001*" });
    expect(label.meta.waybill?.obtained).toBe("text-json");
    expect((await depot.call("take", { item: "labels", boxes: 5 })).data).toMatchObject({ boxes: 0 });
    const none = await depot.call("take", { item: "labels", boxes: 1 });
    expect(none.meta).toMatchObject({ isError: true, waybill: { code: "OUT_OF_STOCK" } });
    const unknown = await depot.call("take", { item: "gold", boxes: 1 });
    expect(unknown.meta.waybill).toMatchObject({ code: "NOT_FOUND", details: { items: expect.any(Array) } });
    const hours = await depot.readResource("depot://opening-hours");
    expect(hours.contents[0]?.["text"]).toContain("Monday");
    expect(JSON.stringify(await depot.getPrompt("complaint", { id: "P-7" }))).toContain("P-7");
  });
});
