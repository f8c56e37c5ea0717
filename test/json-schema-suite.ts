import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { JsonSchema } from "../src/index.ts";

/** One case of the official suite: a schema, a value, and whether the value passes. */
export interface SuiteCase {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly data: unknown;
  readonly valid: boolean;
}

/** The official JSON-Schema-Test-Suite. */
const SUITE_FOLDER = fileURLToPath(new URL("data/json-schema-test-suite", import.meta.url));

/** Reads every required case of a draft (`draft2020-12` or `draft7`). */
export function readSuite(draft: string): SuiteCase[] {
  const folder = join(SUITE_FOLDER, "tests", draft);
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .flatMap((file) => {
      const groups = JSON.parse(readFileSync(join(folder, file), "utf8")) as SuiteGroup[];
      return groups.flatMap(({ description, schema, tests }) =>
        tests.map((test) => ({ ...test, schema, name: `${file} | ${description} | ${test.description}` })),
      );
    });
}

interface SuiteGroup {
  readonly description: string;
  readonly schema: JsonSchema;
  readonly tests: readonly {
    readonly description: string;
    readonly data: unknown;
    readonly valid: boolean;
  }[];
}

/** Reads the documents the suite refers to as if they were on the network. */
export function readRemotes(): Record<string, JsonSchema> {
  const folder = join(SUITE_FOLDER, "remotes");
  const documents: Record<string, JsonSchema> = {};
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith(".json")) continue;
    const path = join(entry.parentPath, entry.name);
    const uri = `http://localhost:1234/${relative(folder, path).replaceAll("\\", "/")}`;
    documents[uri] = JSON.parse(readFileSync(path, "utf8")) as JsonSchema;
  }
  return documents;
}
