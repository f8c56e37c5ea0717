import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { defineConfig } from "tsdown";

/** Copied into `dist` instead of being loaded from `node_modules`; docs/dependencies.md says why. */
const BUNDLED = ["typebox", "re2js", "tokenx"];

/** Licence texts that travel with the bundled code; `preact` is in the inspector's page. */
const LICENCES = ["typebox/license", "re2js/LICENSE", "tokenx/LICENSE", "preact/LICENSE"];

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

function writeThirdPartyLicences(): void {
  const texts = LICENCES.map((path) => {
    const name = path.slice(0, path.indexOf("/"));
    const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
    return `${name} ${version}\n\n${readFileSync(`node_modules/${path}`, "utf8").trim()}\n`;
  });
  writeFileSync("dist/third-party-licences.txt", texts.join("\n\n"));
}

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
      "embedded/depot-server": "src/gateway/embedded/depot-server.ts",
      "workers/look-worker": "src/inspector/server/look-worker.ts",
    },
    platform: "neutral",
    target: "es2022",
    deps: {
      alwaysBundle: BUNDLED.map((name) => new RegExp(`^${name}(/|$)`)),
      onlyBundle: BUNDLED,
      neverBundle: [/^node:/],
    },
    inputOptions: { resolve: { mainFields: ["module", "main"] } },
    outputOptions: { chunkFileNames: "chunks/[name]-[hash].js" },
    checks: { pluginTimings: false },
    dts: false,
    hooks: {
      "build:done": async () => {
        await writeConfigSchema();
        writeThirdPartyLicences();
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
