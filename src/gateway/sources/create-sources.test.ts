import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadedConfig, makeFolder, makeSources } from "../../../test/gateway-sources.ts";
import { query } from "../../../test/make-operation.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { createSources } from "./create-sources.ts";

describe("the sources of a config", () => {
  it("RE-30 come in its order under names that never collide, none of them started", () => {
    const sources = makeSources(
      loadedConfig({
        mcpServers: { "a b": { command: "x" }, local: { command: "x" } },
        openapi: { a_b: { document: "x.json" } },
        operations: "ops/*.ts",
        bus: { nats: "nats://127.0.0.1:1", mount: true },
      }),
    );
    expect(sources.map(({ name, kind }) => `${kind} ${name}`)).toEqual([
      "mcp a_b",
      "mcp local",
      "openapi a_b_2",
      "local local_2",
      "bus bus",
    ]);
    expect(new Set(sources.map(({ state }) => state.status))).toEqual(new Set(["connecting"]));
  });

  it("RE-30 are only those the config asks for", () => {
    expect(makeSources(loadedConfig({}))).toEqual([]);
    expect(makeSources(loadedConfig({ operations: [], bus: { nats: "x", mount: [] } }))).toEqual([]);
    expect(makeSources(loadedConfig({ bus: { nats: "x", serveAs: "us" } }))).toEqual([]);
    const own = makeSources(loadedConfig({}, { localOperations: [query("a.x", () => 1)] }));
    expect(own.map(({ kind }) => kind)).toEqual(["local"]);
  });

  it("RE-30 that are turned off or lack what they refer to say so, and are never started", async () => {
    const faults = {
      "mcpServers.lost": "The environment variable TOKEN is not set (waybill.config.json:3:4)",
    };
    const config: GatewayConfig = {
      mcpServers: { off: { command: "x", disabled: true }, lost: { command: "x", args: ["--token", "t"] } },
      openapi: { gone: { document: "x.json", disabled: true } },
    };
    const sources = makeSources(loadedConfig(config, { faults }));
    for (const source of sources) {
      await source.start();
      await source.retry();
    }
    const [off, lost, gone] = sources;
    expect(off?.state).toEqual({ status: "disabled" });
    expect(gone?.report()).toMatchObject({
      kind: "openapi",
      target: "x.json",
      state: { status: "disabled" },
    });
    expect(lost?.state).toMatchObject({
      status: "down",
      reason: "The environment variable TOKEN is not set (waybill.config.json:3:4).",
    });
    expect(lost?.state).not.toHaveProperty("retryAt");
    expect(lost?.report()).toMatchObject({ target: "x --token ***", operations: 0 });
    await lost?.close();
    expect(lost?.state).toEqual({ status: "closed" });
  });

  it("RE-30 are others when their settings are, policies aside", () => {
    const folder = makeFolder();
    const settings = (config: GatewayConfig, faults = {}) =>
      createSources(loadedConfig(config, { baseDir: folder, faults })).map((created) => created.settings);
    const server = { command: "x" };
    const before = settings({ mcpServers: { a: server } });
    expect(settings({ mcpServers: { a: { ...server, policy: { timeoutMs: 5 } } } })).toEqual(before);
    expect(settings({ mcpServers: { a: { ...server, args: ["y"] } } })).not.toEqual(before);
    expect(settings({ mcpServers: { a: server } }, { "mcpServers.a": "gone" })).not.toEqual(before);
    const locked = settings({ mcpServers: { a: server }, lock: true });
    expect(locked).not.toEqual(before);
    writeFileSync(join(folder, "waybill.lock.json"), "{}");
    expect(settings({ mcpServers: { a: server }, lock: true })).not.toEqual(locked);
  });
});
