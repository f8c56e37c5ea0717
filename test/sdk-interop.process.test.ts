import { expect, it } from "vitest";
import { decodeToolResult } from "../src/formats/index.ts";
import type { JsonSchemaObject } from "../src/index.ts";
import { expectArrived, expectReadable, ROWS, type Row } from "./sdk-interop-rows.ts";
import { callTool, linksOf, reply, withChild } from "./sdk-peers.ts";

it.each([
  ["SDK 1", "a client of SDK 1"],
  ["SDK 1", "a client of SDK 2"],
  ["SDK 2", "a client of SDK 1"],
  ["SDK 2", "a client of SDK 2"],
  ["SDK 2", "a client of the 2026 revision"],
] as const)("TR-4 TR-6 X-2 crosses processes, from a server of %s to %s", async (server, client) => {
  const { schema, good, bad, big } = ROWS["recursive JSON Schema"] as Row;
  const sent = { success: reply("ok", good), misfit: reply("error", bad), none: reply("error", null) };
  const plan = { schema: schema as JsonSchemaObject, results: { ...sent, refused: reply("ok", bad) }, big };
  const pid = await withChild(server, client, plan, async (peer) => {
    expect((await peer.listTools()).tools).toHaveLength(5);
    for (const [name, payload] of Object.entries(sent)) expectArrived(await callTool(peer, name), payload);
    await expect(callTool(peer, "refused")).rejects.toThrow("does not match the tool's output schema");
    const truncated = await callTool(peer, "truncated");
    expect(truncated).toMatchObject({
      structuredContent: { meta: { truncated: true }, data: { name: "a" } },
    });
    expect(decodeToolResult(truncated)).toMatchObject({ format: "status-envelope", isError: false });
    await expectReadable(peer, linksOf(truncated)[0] ?? "", big);
  });
  expect(() => process.kill(pid as number, 0)).toThrow("ESRCH");
});
