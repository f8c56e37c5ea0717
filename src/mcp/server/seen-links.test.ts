import { describe, expect, it } from "vitest";
import { MAX_SEEN_LINKS, SeenLinks } from "./seen-links.ts";

const link = (uri: unknown): object => ({ type: "resource_link", uri, name: "n" });

describe("SeenLinks", () => {
  it("Mcp: remembers links and embedded resources, and everyone who claims them", () => {
    const links = new SeenLinks();
    links.note("one", [link("x://a"), { type: "resource", resource: { uri: "x://b" } }, null, 7, link(7)]);
    links.note("two", [link("x://a")]);
    expect(links.namespacesOf("x://a")).toEqual(["one", "two"]);
    expect(links.namespacesOf("x://b")).toEqual(["one"]);
    expect(links.namespacesOf("x://c")).toEqual([]);
  });

  it("Mcp: keeps as many as the limit and forgets the oldest with one more", () => {
    const links = new SeenLinks();
    for (let i = 0; i < MAX_SEEN_LINKS; i++) links.note("one", [link(`x://${i}`)]);
    expect(links.namespacesOf("x://0")).toEqual(["one"]);
    links.note("one", [link("x://new")]);
    expect(links.namespacesOf("x://0")).toEqual([]);
    expect(links.namespacesOf("x://1")).toEqual(["one"]);
  });
});
