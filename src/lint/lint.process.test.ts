import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { ESLint } from "eslint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CASE_OPTIONS, CASES } from "../../test/lint-cases/cases.ts";
import type { LintCase, LintMessage } from "../../test/lint-cases/lint-case.ts";
import { ROOT, runCommand } from "../../test/run-node.ts";
import defaultExport, { noRawMcpText, plugin } from "./index.ts";

const RULE = "waybill/no-raw-mcp-text";

const ESLINT_CONFIG = `
import { plugin as waybill } from "waybill/lint";

export default [
  { plugins: { waybill }, rules: { "${RULE}": "error" } },
  { files: ["**/options-*"], rules: { "${RULE}": ["error", ${JSON.stringify(CASE_OPTIONS)}] } },
];
`;

const OXLINT_CONFIG = {
  jsPlugins: ["waybill/lint"],
  categories: { correctness: "off" },
  rules: { [RULE]: "error" },
  overrides: [{ files: ["**/options-*"], rules: { [RULE]: ["error", CASE_OPTIONS] } }],
};

const BIOME_CONFIG = {
  plugins: ["./node_modules/waybill/src/lint/no-raw-mcp-text.grit"],
  linter: { rules: { preset: "none" } },
};

const RESTRICTED_CONFIG = {
  linter: {
    rules: {
      preset: "none",
      style: {
        noRestrictedImports: {
          level: "error",
          options: {
            paths: {
              "waybill/formats": {
                importNames: ["buildToolResponse"],
                message: "Use buildStructuredResponse.",
              },
            },
          },
        },
      },
    },
  },
};

/** Every message in full, each naming what to use instead. */
const MESSAGES: readonly (readonly [LintMessage, RegExp])[] = [
  ["deprecated", /^`\w+` is deprecated: use buildStructuredResponse or composeToolPayload instead\.$/],
  [
    "reExport",
    /^This exports all of a module again, .* use buildStructuredResponse or composeToolPayload\.$/,
  ],
  ["rawResult", /^This tool result is text .* use buildStructuredResponse or composeToolPayload instead\.$/],
];

type Findings = readonly { readonly file: string; readonly message: string }[];

const fileOf = (lintCase: LintCase): string =>
  `${lintCase.withOptions ? "options" : "case"}-${CASES.indexOf(lintCase)}.${lintCase.language ?? "js"}`;

/** The messages about one file by kind; anything that is not ours stays as it is and fails the comparison. */
const kindsIn = (findings: Findings, file: string): string[] =>
  findings
    .filter((finding) => basename(finding.file) === file)
    .map(({ message }) => MESSAGES.find(([, text]) => text.test(message))?.[0] ?? message)
    .sort();

const folder = mkdtempSync(join(tmpdir(), "waybill-lint-"));

const put = (path: string, content: unknown) =>
  writeFileSync(join(folder, path), typeof content === "string" ? content : JSON.stringify(content));

/** Runs a linter that is expected to find something; without the hardening flags, as linters compile schemas into code. */
async function run(program: string, ...args: string[]): Promise<string> {
  const command = [join(ROOT, "node_modules", program), ...args];
  const ran = await runCommand(process.execPath, command, { cwd: folder });
  expect(ran.code, ran.stderr + ran.stdout.slice(0, 1_000)).toBe(1);
  return ran.stdout;
}

async function runEslint(): Promise<Findings> {
  const files: ESLint.LintResult[] = JSON.parse(await run("eslint/bin/eslint.js", "--format=json", "cases"));
  return files.flatMap(({ filePath, messages }) =>
    messages.map(({ message }) => ({ file: filePath, message })),
  );
}

async function runOxlint(): Promise<Findings> {
  const report: { diagnostics: { filename: string; message: string }[] } = JSON.parse(
    await run("oxlint/bin/oxlint", "--format=json", "cases"),
  );
  return report.diagnostics.map(({ filename, message }) => ({ file: filename, message }));
}

async function runBiome(config: string): Promise<Findings> {
  const flags = ["--reporter=json", "--max-diagnostics=none", `--config-path=${config}`];
  const report: { diagnostics: { location: { path: string }; message: string }[] } = JSON.parse(
    await run("@biomejs/biome/bin/biome", "lint", ...flags, "cases"),
  );
  return report.diagnostics.map(({ location, message }) => ({ file: location.path, message }));
}

beforeAll(() => {
  mkdirSync(join(folder, "node_modules"));
  mkdirSync(join(folder, "cases"));
  symlinkSync(ROOT, join(folder, "node_modules/waybill"), "junction");
  put("package.json", { private: true, type: "module" });
  put("eslint.config.js", ESLINT_CONFIG);
  put(".oxlintrc.json", OXLINT_CONFIG);
  put("biome.json", BIOME_CONFIG);
  put("restricted.json", RESTRICTED_CONFIG);
  for (const lintCase of CASES) put(`cases/${fileOf(lintCase)}`, `${lintCase.code}\n`);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the rule in ESLint", () => {
  let findings: Findings = [];

  beforeAll(async () => {
    findings = await runEslint();
  });

  it.each(CASES.filter(({ language }) => language !== "ts"))("TR-8 ESLint judges $name", (lintCase) => {
    expect(kindsIn(findings, fileOf(lintCase))).toEqual(lintCase.finds ?? []);
  });
});

describe("the rule in oxlint", () => {
  let findings: Findings = [];

  beforeAll(async () => {
    findings = await runOxlint();
  });

  it.each(CASES)("TR-8 oxlint judges $name", (lintCase) => {
    expect(kindsIn(findings, fileOf(lintCase))).toEqual(lintCase.finds ?? []);
  });
});

describe("the plugin for Biome", () => {
  let findings: Findings = [];

  beforeAll(async () => {
    findings = await runBiome("biome.json");
  });

  it.each(CASES)("TR-8 Biome judges $name, or misses it as documented", (lintCase) => {
    const kinds = new Set(kindsIn(findings, fileOf(lintCase)));
    const expected = lintCase.finds ?? ["deprecated"];
    expect([...kinds]).toEqual(lintCase.biome ? [...new Set(expected)] : []);
  });

  it("TR-8 Biome reports a function once, however many results it returns", () => {
    const several = CASES.filter(({ name }) => name === "several returns" || name === "both branches");
    const kinds = several.map((lintCase) => kindsIn(findings, fileOf(lintCase)));
    expect(kinds).toEqual([["rawResult"], ["rawResult"]]);
  });
});

describe("noRestrictedImports of Biome", () => {
  it("TR-8 catches the names that are imported, exported or taken apart on the spot", async () => {
    const findings = await runBiome("restricted.json");
    const caught = CASES.filter((lintCase) => kindsIn(findings, fileOf(lintCase)).length > 0);
    expect(caught.map(({ name }) => name)).toEqual([
      "a named import",
      "a renamed import among others",
      "an import by a string",
      "a re-export",
      "a renamed re-export",
      "a dynamic import, taken apart",
      "then, taken apart",
      // Types cost nothing, but this rule of Biome does not tell them apart.
      "imports of types alone",
      "types by other ways",
    ]);
  });
});

describe("the exports of waybill/lint", () => {
  it("TR-8 is a plugin by ESLint's own types, by name and as the default that oxlint needs", () => {
    const typed: ESLint.Plugin = plugin;
    expect(typed.rules?.["no-raw-mcp-text"]).toBe(noRawMcpText);
    expect(defaultExport).toBe(plugin);
  });

  it("TR-8 refuses options it does not know", async () => {
    put("wrong.config.js", ESLINT_CONFIG.replace('"names"', '"nmaes"'));
    const command = [join(ROOT, "node_modules/eslint/bin/eslint.js"), "--config", "wrong.config.js", "cases"];
    const ran = await runCommand(process.execPath, command, { cwd: folder });
    expect(ran.code).toBe(2);
    expect(ran.stderr).toContain('"nmaes"');
  });
});
