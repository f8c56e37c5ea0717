// @ts-check
// Breaks one area in many small ways and expects a test to notice each: `npm run mutation -- <area>`. Each takes under an hour.
import { spawn } from "node:child_process";
import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** What each area breaks, and the tests that should notice. */
const AREAS = {
  decoders: {
    mutate: [
      "src/formats/{carrier,decode-tool-result,residual}.ts",
      "src/core/{json/json-value,result/recover-json}.ts",
      "src/formats/tiered-envelope/{tiered-envelope,tiered-envelope-codec}.ts",
      "src/formats/tool-envelope/{base64-text,envelope-block,tool-envelope-codec}.ts",
      "src/formats/status-envelope/status-envelope-codec.ts",
    ],
    tests: [
      "src/formats/*.test.ts",
      "src/formats/{tiered,tool,status}-envelope/*.test.ts",
      "src/core/json/*.test.ts",
      "test/{format-laws,vectors,corpus}.test.ts",
    ],
  },
  access: {
    mutate: ["src/core/access/*.ts", "src/gateway/policy/{policies,policy,fair-queue}.ts"],
    tests: [
      "src/core/{access,registry,execution}/*.test.ts",
      "src/gateway/policy/*.test.ts",
      "test/access-matrix.test.ts",
    ],
  },
  idempotency: {
    mutate: ["src/core/idempotency/*.ts", "src/gateway/policy/call-reuse.ts"],
    tests: [
      "src/gateway/policy/policies.test.ts",
      "src/core/idempotency/*.test.ts",
      "test/{idempotency-store,openapi-server-idempotency}.test.ts",
    ],
  },
  call: {
    mutate: [
      "src/call/{pending-call,pending-request-map,call-handler,deadline-queue,recent-ids,retry-budget}.ts",
    ],
    tests: ["src/call/*.test.ts", "test/{call-model,bus-contract}.test.ts"],
  },
  schema: {
    mutate: ["src/core/schema/{evaluate*,normalize,build-nodes}.ts"],
    // Without the tests of patterns, of what is refused and of processor time: those take most of the time, and code that is made ready to be
    // broken is slower than they allow.
    tests: [
      "src/core/schema/{evaluate*,normalize,read-keywords,any-schema,convert}.test.ts",
      "test/{json-schema-suite,normalization-laws,normalization-reference}.test.ts",
    ],
  },
};

const [name = ""] = process.argv.slice(2);
const area = Object.hasOwn(AREAS, name) ? AREAS[/** @type {keyof typeof AREAS} */ (name)] : undefined;
if (area === undefined) {
  console.error(`Usage: npm run mutation -- <${Object.keys(AREAS).join("|")}>`);
  process.exitCode = 2;
} else {
  const files = area.mutate.flatMap(expandBraces);
  const gone = files.filter((file) => !file.includes("*") && !existsSync(join(ROOT, file)));
  if (gone.length > 0)
    throw new Error(`scripts/mutation.js names files that are not there: ${gone.join(", ")}`);
  const mutate = [...files, "!src/**/*.test.ts", "!src/**/*.test-d.ts"].join(",");
  const args = ["node_modules/@stryker-mutator/core/bin/stryker.js", "run", "--mutate", mutate];
  const env = { ...process.env, WAYBILL_MUTATION_TESTS: area.tests.join(" ") };
  spawn(process.execPath, args, { cwd: ROOT, env, stdio: "inherit" }).on("close", (code) => {
    const report = new URL("../reports/mutation.json", import.meta.url);
    if (existsSync(report)) renameSync(report, new URL(`../reports/mutation-${name}.json`, import.meta.url));
    process.exitCode = code ?? 1;
  });
}

/** Stryker splits its list at every comma, those within braces too. @param {string} pattern @returns {string[]} */
function expandBraces(pattern) {
  const [braces, choices = ""] = /\{([^}]*)\}/.exec(pattern) ?? [];
  if (braces === undefined) return [pattern];
  return choices.split(",").flatMap((choice) => expandBraces(pattern.replace(braces, choice)));
}
