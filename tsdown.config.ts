import { copyFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { esmExternalRequirePlugin } from "rolldown/plugins";
import { defineConfig } from "tsdown";
import { BUNDLED } from "./scripts/third-party-notices.js";

/** One entry for each subpath of the package. */
const SUBPATHS = {
  index: "src/index.ts",
  formats: "src/formats/index.ts",
  call: "src/call/index.ts",
  "call/nats": "src/call/nats/index.ts",
  mcp: "src/mcp/index.ts",
  openapi: "src/openapi/index.ts",
  gateway: "src/gateway/index.ts",
  lint: "src/lint/index.ts",
};

/** For editors: what a config may hold. */
async function writeConfigSchema(): Promise<void> {
  const { CONFIG_SCHEMA } = await import(`${pathToFileURL("dist/gateway.js").href}?${Date.now()}`);
  writeFileSync("dist/waybill.schema.json", `${JSON.stringify(CONFIG_SCHEMA, null, 2)}\n`);
}

export default defineConfig([
  {
    entry: {
      ...SUBPATHS,
      cli: "src/cli.ts",
      "embedded/depot-server": "examples/parcel-office/depot-server.ts",
      "workers/decode-thread": "src/inspector/server/decode/decode-thread.ts",
    },
    platform: "neutral",
    target: "es2022",
    deps: {
      alwaysBundle: BUNDLED.map((name) => new RegExp(`^${name}(/|$)`)),
      onlyBundle: BUNDLED,
    },
    // Commander is CommonJS: what it requires of Node is imported.
    plugins: [esmExternalRequirePlugin({ external: [/^node:/] })],
    inputOptions: { resolve: { mainFields: ["module", "main"] } },
    outputOptions: { chunkFileNames: "chunks/[name]-[hash].js" },
    checks: { pluginTimings: false },
    dts: false,
    hooks: {
      "build:done": async () => {
        await writeConfigSchema();
        copyFileSync("src/lint/no-raw-mcp-text.grit", "dist/no-raw-mcp-text.grit");
      },
    },
  },
  {
    entry: SUBPATHS,
    platform: "neutral",
    target: "es2022",
    clean: false,
    deps: { onlyBundle: [] },
    checks: { pluginTimings: false },
    dts: { emitDtsOnly: true },
  },
]);
