import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { mayMatch, parseUriTemplate } from "./uri-template.ts";

describe("parseUriTemplate", () => {
  it.each([
    ["test://template/{id}/data", "test://template/7/data", { id: "7" }],
    ["file:///{+path}", "file:///a/b.txt", { path: "a/b.txt" }],
    ["x://{a}-{b}.txt", "x://1-2-3.txt", { a: "1", b: "2-3" }],
    ["x://{name}", "x://a%20b", { name: "a b" }],
    ["x://{__proto__}", "x://a", JSON.parse('{"__proto__":"a"}')],
  ])("Mcp: %s finds the variables of %s", (template, uri, expected) => {
    expect(JSON.stringify(parseUriTemplate(template).match(uri))).toBe(JSON.stringify(expected));
  });

  it.each([
    ["test://template/{id}/data", "test://template//data"],
    ["test://template/{id}/data", "test://template/a/b/data"],
    ["x://{a}", "x://%E0%A4%A"],
    ["x://{a}", `x://${"a".repeat(70_000)}`],
    ["x://{a}y", "x://a"],
  ])("Mcp: %s does not match %s", (template, uri) => {
    expect(parseUriTemplate(template).match(uri)).toBeUndefined();
  });

  it("Mcp: refuses templates of higher levels", () => {
    expect(() => parseUriTemplate("x://{?q}")).toThrow(TypeError);
  });

  it("Mcp: takes one pass, whatever the template", () => {
    const matcher = parseUriTemplate(`x:${Array.from({ length: 200 }, (_, i) => `{+a${i}}-`).join("")}!`);
    const started = cpuMs();
    for (let i = 0; i < 4; i++) expect(matcher.match(`x:${"-a".repeat(30_000)}`)).toBeUndefined();
    expect(cpuMs() - started).toBeLessThan(2_000);
  });

  it("Mcp: guesses by the beginning where a template is of a higher level", () => {
    expect(mayMatch("x://a{?q}", "x://a?q=1")).toBe(true);
    expect(mayMatch("x://a{?q}", "y://a?q=1")).toBe(false);
    expect(mayMatch("{?q}", "y://a")).toBe(false);
  });
});
