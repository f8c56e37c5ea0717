// @ts-check
// Breaks one area in many small ways and expects a test to notice each: `npm run mutation -- <area>`. Each takes under an hour.
import { spawn } from "node:child_process";
import { existsSync, renameSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** What each area breaks, and the tests that should notice. */
const AREAS = {
  decoders: {
    mutate: [
      "src/formats/{contract,decode-tool-result,detect,residual,residual-policy}.ts",
      "src/core/{json/json-depth,result/recover-json}.ts",
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
    mutate: [
      "src/core/access/*.ts",
      "src/gateway/policy/{admit-operation,check-policy,gates,policy-book,policy-hooks,policy-rules,turns}.ts",
    ],
    tests: [
      "src/core/{access,registry,execution}/*.test.ts",
      "src/gateway/policy/*.test.ts",
      "test/access-matrix.test.ts",
    ],
  },
  idempotency: {
    mutate: [
      "src/core/idempotency/*.ts",
      "src/gateway/policy/{keyed-calls,call-key,shared-runs,result-cache}.ts",
    ],
    tests: [
      "src/gateway/policy/policies.test.ts",
      "src/core/idempotency/*.test.ts",
      "test/{idempotency-store,openapi-server-idempotency}.test.ts",
    ],
  },
  call: {
    mutate: [
      "src/call/{pending-call,pending-request-map,pending-stream,call-handler,running-call,call-retries}.ts",
    ],
    tests: ["src/call/*.test.ts", "test/{call-model,bus-contract}.test.ts"],
  },
  schema: {
    mutate: ["src/core/schema/{evaluate*,normalize*,read-keywords,read-assertions}.ts"],
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
  const mutate = [...area.mutate.flatMap(expandBraces), "!src/**/*.test.ts", "!src/**/*.test-d.ts"].join(",");
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
