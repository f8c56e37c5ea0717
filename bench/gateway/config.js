// @ts-check
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const OPERATION = `
export const add = {
  id: "bench.add", namespace: "bench", name: "add", version: "1.0.0", type: "query", description: "Adds two numbers.",
  inputSchema: { type: "object", required: ["a", "b"], properties: { a: { type: "number" }, b: { type: "number" } } },
  outputSchema: { type: "object", required: ["sum"], properties: { sum: { type: "number" } } },
  handler: ({ a, b }) => ({ sum: a + b }),
};
`;

/**
 * Writes a folder with a config and one local operation, as a user would have it.
 * @param {Readonly<Record<string, unknown>>} config added to the operation
 */
export function writeConfig(config = {}) {
  const folder = mkdtempSync(join(tmpdir(), "waybill-bench-"));
  writeFileSync(join(folder, "operations.mjs"), OPERATION);
  writeFileSync(
    join(folder, "waybill.config.json"),
    JSON.stringify({ operations: "operations.mjs", ...config }),
  );
  return { folder, remove: () => rmSync(folder, { recursive: true }) };
}

export const CLI = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
