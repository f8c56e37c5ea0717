import { describe, expect, it } from "vitest";
import { result } from "../../index.ts";
import { compileTemplate, type ResultTemplate } from "./result-template.ts";

const say = (template: ResultTemplate, data: unknown) => compileTemplate("render", template)(data);

describe("a template over data", () => {
  const data = { items: [{ name: "One" }, { name: "Two" }], owner: { "a/b": "x" }, total: 2, none: null };

  it.each([
    ["{#/items} items", "2 items"],
    ["{/items/0/name} and {/items/1/name}", "One and Two"],
    ["{/total} of {#/owner}", "2 of 1"],
    ["{/owner/a~1b}", "x"],
    ["{/none}", "null"],
    ["{/owner}", '{"a/b":"x"}'],
    ["{{literal}} {/total}", "{literal} 2"],
    ["no places", "no places"],
  ])("X-7 fills %s", (summary, expected) => {
    expect(say({ summary }, data)).toEqual({ summary: expected });
  });

  it("X-7 leaves a text out whose place leads nowhere, and keeps the others", () => {
    const template = {
      status: "info",
      summary: "{/missing} items",
      details: ["{/total} in all", "{/items/7/name}"],
      nextSteps: ["{/constructor}", "Ask {/items/0/name}."],
    } as const;
    expect(say(template, data)).toEqual({
      status: "info",
      details: ["2 in all"],
      nextSteps: ["Ask One."],
    });
    expect(say({ summary: "{#/total}" }, data)).toEqual({});
  });

  it("X-7 takes a source's text as one clean line of at most 200 characters", () => {
    const hostile = { name: `a\n\u001b[31mb\u202e\u0000${"x".repeat(500)}` };
    const { summary = "" } = say({ summary: "{/name}" }, hostile) ?? {};
    expect(summary).toMatch(/^a bx+…$/);
    expect([...summary]).toHaveLength(200);
  });

  it("X-7 a source's text is no Markdown", () => {
    const name = "![x](https://evil.example/?q=1) <img src=y> `code` | [a]: b \\";
    const { markdown } = say({ markdown: "# Of {/name}\n\n[All](https://shop.example)" }, { name }) ?? {};
    expect(markdown).toBe(
      "# Of !\\[x\\](https://evil.example/?q=1) \\<img src=y\\> \\`code\\` \\| \\[a\\]: b \\\\\n\n[All](https://shop.example)",
    );
    expect(say({ summary: "{/name}" }, { name: "[a]" })).toEqual({ summary: "[a]" });
  });

  it("X-7 is said however long the values of a source are", () => {
    const places = "{/name}".repeat(60);
    const said = say({ summary: places, details: [places], nextSteps: [places] }, { name: "é".repeat(300) });
    expect(() => result(1, said)).not.toThrow();
    expect(said?.details?.[0]).toHaveLength(8_192);
  });

  it("X-7 writes links: an address of its own must be one of the web, parts of one are encoded", () => {
    const links = [
      { uri: "{/url}", name: "{/title}" },
      { uri: "https://example.com/{/title}?q={/total}", name: "Page" },
    ];
    expect(say({ links }, { url: "https://example.com/a", title: "a/b &c", total: 3 })).toEqual({
      links: [
        { uri: "https://example.com/a", name: "a/b &c" },
        { uri: "https://example.com/a%2Fb%20%26c?q=3", name: "Page" },
      ],
    });
    for (const url of ["javascript:alert(1)", "file:///etc/passwd", "no address", 5]) {
      expect(say({ links: links.slice(0, 1) }, { url, title: "x" })).toEqual({});
    }
  });

  it.each([
    [{ summary: "{name}" }, "render.summary"],
    [{ summary: "{" }, "render.summary"],
    [{ details: ["fine", "{/a"] }, "render.details[1]"],
    [{ links: [{ uri: "{x}", name: "n" }] }, "render.links[0].uri"],
    [{ sumary: "x" }, "did you mean"],
  ])("X-7 refuses %j where it is declared", (template, message) => {
    expect(() => compileTemplate("render", template as ResultTemplate)).toThrow(message);
  });

  it.each([undefined, null, 5, "text", []])("X-7 says nothing false about %j", (data) => {
    expect(say({ summary: "{/a}" }, data)).toEqual({});
  });
});
