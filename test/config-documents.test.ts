import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { loadConfig } from "../src/gateway/index.ts";
import { ROOT } from "./run-node.ts";

const folder = mkdtempSync(join(tmpdir(), "waybill-config-documents-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const NAMES = [
  "GITHUB_TOKEN",
  "SHOP_TOKEN",
  "ADA_TOKEN",
  "BEN_TOKEN",
  "CI_TOKEN",
  "BILLING_TOKEN",
  "WAYBILL_SESSION_KEY",
];
const env = Object.fromEntries(NAMES.map((name) => [name, `${name}-0123456789abcdef`]));

const blocks = ["docs/gateway.md", "docs/recipes.md", "docs/getting-started.md"].flatMap((page) =>
  [...readFileSync(join(ROOT, page), "utf8").matchAll(/^```json\n(.*?)^```$/gms)].map(
    (match, at) => [`${page}, JSON block ${at + 1}`, match[1] as string] as const,
  ),
);

describe("the configs of the documents", () => {
  it("are found", () => {
    expect(blocks.length).toBeGreaterThan(5);
  });

  it.each(blocks)("%s is one that can be used", async (_, text) => {
    const path = join(folder, "waybill.config.json");
    writeFileSync(path, text);
    const { warnings, config } = await loadConfig(path, { env, cwd: folder });
    expect(warnings.filter((warning) => !warning.includes("env file"))).toEqual([]);
    expect(Object.keys(config).length).toBeGreaterThan(0);
  });

  it("refuses a field that there is not, as it would in a document", async () => {
    const path = join(folder, "waybill.config.json");
    writeFileSync(path, '{ "serv": {} }');
    await expect(loadConfig(path, { env, cwd: folder })).rejects.toThrow('did you mean "serve"?');
  });
});
