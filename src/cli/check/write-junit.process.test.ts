import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CheckList } from "./check-report.ts";
import { escapeXml, toJunit } from "./run-check.ts";

const hasPython = spawnSync("python3", ["--version"]).status === 0;
if (process.env["CI"] === "true" && !hasPython) throw new Error("python3 is needed in CI");

const PARSE = `
import json, sys, xml.etree.ElementTree as E
root = E.fromstring(sys.stdin.buffer.read())
print(json.dumps({"root": root.attrib, "cases": [[c.attrib, [[k.tag, k.attrib, k.text] for k in c]] for c in root.iter("testcase")]}))
`;

interface Parsed {
  readonly root: Record<string, string>;
  readonly cases: [Record<string, string>, [string, Record<string, string>, string | null][]][];
}

function parse(xml: string): Parsed {
  const { stdout, stderr, status } = spawnSync("python3", ["-c", PARSE], { input: xml, encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as Parsed;
}

const NASTY = "a]]>b<![CDATA[ \"q\" 's' & \u0000\u0001\u001b[31m\ud800 \ufffe <x/> &#0; &lol;";

describe.skipIf(!hasPython)("JUnit XML (read back by Python; skipped where there is none)", () => {
  it("holds one case for each check, with failures, skips and counts", () => {
    const list = new CheckList({ target: NASTY, kind: "mcp" });
    list.pass("mcp.list", "", "fine");
    list.fail("mcp.call", NASTY, `broken ${NASTY}`, { evidence: { NASTY } });
    list.warn("mcp.tool.description", "t", "none");
    list.skip("mcp.call", "u", "not called");
    const loose = parse(toJunit([list.report], { strict: false }));
    expect(loose.root).toMatchObject({ tests: "4", failures: "1", skipped: "1", errors: "0" });
    expect(loose.cases.map(([, inner]) => inner.map(([tag]) => tag))).toEqual([
      [],
      ["failure"],
      ["system-out"],
      ["skipped"],
    ]);
    expect(loose.cases[1]?.[1][0]?.[1]["message"]).toContain("a]]>b<![CDATA[");
    const strict = parse(toJunit([list.report], { strict: true }));
    expect(strict.root).toMatchObject({ failures: "2" });
  });

  it("can be read whatever text is in it, and gives the text back", () => {
    const texts = fc.sample(fc.string({ unit: "binary", maxLength: 40 }), 300);
    const xml = `<?xml version="1.0" encoding="UTF-8"?><testsuites>${texts
      .map((text) => `<testcase name="${escapeXml(text)}"><failure>${escapeXml(text)}</failure></testcase>`)
      .join("")}</testsuites>`;
    const { cases } = parse(xml);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
    const lost = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ufffe\uffff]/g;
    const kept = texts.map((text) => text.replace(lost, "\ufffd"));
    expect(cases.map(([{ name }]) => name)).toEqual(kept);
    expect(cases.map(([, inner]) => inner[0]?.[2] ?? "")).toEqual(kept);
  });
});
