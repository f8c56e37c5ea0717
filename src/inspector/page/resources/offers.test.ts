import { describe, expect, it } from "vitest";
import { expandTemplate, offersIn, variablesIn } from "./resources-view.tsx";

describe("templates of resources", () => {
  it.each([
    ["file:///{path}", ["path"]],
    ["x://{a}/{b,c}{?d*,e:3}", ["a", "b", "c", "d", "e"]],
    ["x://{a}/{a}", ["a"]],
    ["x://none", []],
  ])("%j has the variables %j", (template, names) => {
    expect(variablesIn(template)).toEqual(names);
  });

  it.each([
    ["x://{a}", { a: "b/c d" }, "x://b%2Fc%20d"],
    ["x://{+a}", { a: "b/c" }, "x://b/c"],
    ["x://{a}{?q,r}", { a: "1", r: "é" }, "x://1?r=%C3%A9"],
    ["x://{a}{/b,c}", { b: "2", c: "3" }, "x:///2/3"],
    ["x://{a}{#f}", { f: "top" }, "x://#top"],
    ["x://{a}", { a: "\ud800" }, "x://%EF%BF%BD"],
    ["x://{toString}", {}, "x://"],
  ])("%j with %j is %j", (template, given, address) => {
    expect(expandTemplate(template, given)).toBe(address);
  });

  it("have at most 50 variables", () => {
    expect(variablesIn(Array.from({ length: 51 }, (_, at) => `{v${at}}`).join("/"))).toHaveLength(50);
  });
});

describe("what sources offer", () => {
  it("is listed under keys that tell it apart", () => {
    const texts = { name: "one" };
    const offers = offersIn({
      sources: ["a", "b"].map((source) => ({
        source,
        resources: [{ ...texts, uri: "x://1" }],
        templates: [{ ...texts, uriTemplate: "x://1" }],
        prompts: [{ ...texts, arguments: [] }],
        more: 0,
      })),
    });
    expect(new Set(offers.map(({ key }) => key)).size).toBe(6);
    expect(offers.every(({ canFollow }) => !canFollow)).toBe(true);
  });
});
