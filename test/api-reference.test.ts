import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { apiReference, staleReference } from "../scripts/api-reference.js";
import { ROOT } from "./run-node.ts";

const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const pages = apiReference();

describe("docs/api", () => {
  it("is what the doc comments say", () => {
    expect(staleReference(), "docs/api is not current: run npm run api").toEqual([]);
  });

  it("has a page for every subpath of the package", () => {
    const subpaths = Object.keys(manifest.exports).filter((subpath) => !subpath.endsWith(".json"));
    const names = subpaths.map((subpath) => subpath.replace(/^\./, "waybill"));
    const titles = [...pages.values()].map((text) => text.slice(2, text.indexOf("\n")));
    expect(titles).toEqual(["Reference", ...names]);
  });

  it.each([...pages])("%s links to headings that are there", (_name, text) => {
    const headings = [...text.matchAll(/^#{2,3} (.+)$/gm)].map(([, heading = ""]) => heading.toLowerCase());
    for (const [, anchor = ""] of text.matchAll(/\]\(#([^)]+)\)/g)) {
      const [, name = anchor, number = "0"] = /^(.+?)-(\d+)$/.exec(anchor) ?? [];
      expect(headings.filter((heading) => heading === name).length).toBeGreaterThan(Number(number));
    }
  });

  it("shows no bodies and nothing private", () => {
    const classes = [...pages.values()].flatMap((text) => text.match(/^class .*?^}/gms) ?? []);
    expect(classes.length).toBeGreaterThan(5);
    for (const shown of classes) expect(shown).not.toMatch(/^\s+(?:#|private |protected |return )/m);
  });
});
