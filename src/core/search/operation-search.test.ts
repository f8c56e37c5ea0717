import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { query } from "../../../test/make-operation.ts";
import type { AnyOperation } from "../operation/operation-types.ts";
import { OperationSearch, type SearchOptions } from "./operation-search.ts";

const tool = (id: string, description = "", extra: object = {}): AnyOperation =>
  query(id, () => 1, { description, ...extra });

async function idsOf(
  operations: readonly AnyOperation[],
  asked: string,
  options?: SearchOptions,
): Promise<readonly string[]> {
  return (await new OperationSearch().find(operations, asked, options)).map(({ id }) => id);
}

const TOOLS = [
  tool("hub.create_issue", "Opens one.", { inputSchema: { properties: { assigneeNames: {} } } }),
  tool("hub.deleteIssueComments", "Takes away what was said."),
  tool("files.compressPDF2", "Makes documents smaller.", { tags: ["archives"] }),
  tool("math.sum", "Of two numbers.", { title: "Add" }),
  tool("web.take-screenshot", "A picture of the page.", {
    inputSchema: {
      properties: { target: { properties: { viewport: { description: "Width in pixels." } } } },
    },
  }),
];

describe("a search", () => {
  it.each([
    ["issues", "hub.create_issue"],
    ["creating an issue", "hub.create_issue"],
    ["screnshot", "web.take-screenshot"],
    ["screenshtos", "web.take-screenshot"],
    ["screensh", "web.take-screenshot"],
    ["comments", "hub.deleteIssueComments"],
    ["deleteissuecomments", "hub.deleteIssueComments"],
    ["pdf", "files.compressPDF2"],
    ["PDF2", "files.compressPDF2"],
    ["documents", "files.compressPDF2"],
    ["archive", "files.compressPDF2"],
    ["assignee", "hub.create_issue"],
    ["viewport", "web.take-screenshot"],
    ["pixel", "web.take-screenshot"],
    ["remove a comment", "hub.deleteIssueComments"],
    ["adding numbers", "math.sum"],
    ["math.sum", "math.sum"],
  ])(
    "finds by names split at case, punctuation and digits, by stems, typos and what is said: %s",
    async (asked, id) => {
      expect((await idsOf(TOOLS, asked, { limit: 1 }))[0]).toBe(id);
    },
  );

  it("gives the operation first whose id was asked for", async () => {
    const near = [tool("a.list-all", "The a.list of all: a list."), tool("a.list"), tool("b.list")];
    expect((await idsOf(near, " A.List "))[0]).toBe("a.list");
  });

  it("gives more to what the first sentence of a description says than to the rest", async () => {
    const long = tool("a.one", "Opens a door. It may paint the wall as well, or paint the floor.");
    const short = tool("b.two", "Paint the wall. It may open a door as well, or another door.");
    expect(await idsOf([long, short], "paint the wall", { limit: 1 })).toEqual(["b.two"]);
    expect(await idsOf([short, long], "open a door", { limit: 1 })).toEqual(["a.one"]);
  });

  it("finds nothing where nothing fits, everything where nothing is asked, and words that say nothing where there are no others", async () => {
    expect(await idsOf(TOOLS, "zebra")).toEqual([]);
    expect(await idsOf([], "zebra")).toEqual([]);
    expect(await idsOf(TOOLS, " ")).toHaveLength(TOOLS.length);
    expect(await idsOf(TOOLS, "", { limit: 2 })).toHaveLength(2);
    expect(await idsOf([tool("what.is"), tool("some.thing")], "what is")).toEqual(["what.is"]);
  });

  it("finds parts of ids and titles, and signs, where no word does", async () => {
    expect(await idsOf(TOOLS, "eenShot")).toEqual(["web.take-screenshot"]);
    const signs = [tool("a.b", "", { title: "<-->" }), tool("a.c")];
    expect([await idsOf(signs, "--"), await idsOf(signs, "?!")]).toEqual([["a.b"], []]);
  });

  it("leaves out what fits far worse than the best", async () => {
    const many = Array.from({ length: 100 }, (_, at) => tool(`many.op${at}`, "Of all ops."));
    expect(await idsOf(many, "op77", { limit: 20 })).toEqual(["many.op77"]);
    expect(await idsOf(many, "op", { limit: 20 })).toHaveLength(20);
  });

  it("without a limit gives those alone that have the most of the words", async () => {
    const parcels = [tool("parcel.send"), tool("parcel.track"), tool("letter.send")];
    expect(await idsOf(parcels, "send a parcel")).toEqual(["parcel.send"]);
    expect(await idsOf(parcels, "parcel")).toEqual(["parcel.send", "parcel.track"]);
    expect(await idsOf(parcels, "send a parcel", { limit: 3 })).toHaveLength(3);
  });

  it("follows the list it is given: what is not in it has no part in what is found, nor in the order", async () => {
    const search = new OperationSearch();
    const find = async (list: readonly AnyOperation[], asked: string) =>
      (await search.find(list, asked, { limit: 10 })).map(({ id }) => id);
    const seen = [tool("a.red-box", "Red."), tool("b.blue-box", "A blue box."), tool("c.box", "Green.")];
    const hidden = Array.from({ length: 50 }, (_, at) => tool(`hidden.red${at}`, "Red, red."));
    const before = await Promise.all(["red box", "blue", "box"].map((asked) => find(seen, asked)));
    expect(await find([...seen, ...hidden], "red")).toHaveLength(10);
    expect(await Promise.all(["red box", "blue", "box"].map((asked) => find([...seen], asked)))).toEqual(
      before,
    );
    expect(await find(seen.slice(0, 2), "green")).toEqual([]);
    const renamed = [...seen.slice(0, 2), tool("c.box", "Purple.")];
    expect(await find(renamed, "purple")).toEqual(["c.box"]);
    expect(await find(renamed, "green")).toEqual([]);
  });
});

describe("what it reads is bounded", () => {
  it.each([
    ["name", 40, (words: string) => tool(`a.${words.replaceAll(" ", "-")}`)],
    ["title", 40, (words: string) => tool("a.b", "", { title: words })],
    ["description", 300, (words: string) => tool("a.b", words)],
  ])("the first words of a %s count, and no more", async (_, most, make) => {
    const fill = (count: number) => Array.from({ length: count }, () => "x").join(" ");
    expect(await idsOf([make(`${fill(most - 1)} zebra`)], "zebras")).toHaveLength(1);
    expect(await idsOf([make(`${fill(most)} zebra`)], "zebras")).toEqual([]);
  });

  it("40 letters of a word and 16 words of a query count", async () => {
    const long = "z".repeat(40);
    expect(await idsOf([tool("a.b", `${long}yyyy`)], `${long}xxxx`)).toEqual(["a.b"]);
    expect(await idsOf([tool("a.b", `${long.slice(4)}yyyy`)], `${long.slice(4)}xxxx`)).toEqual([]);
    const words = Array.from({ length: 15 }, (_, at) => `w${"abcdefghijklmno"[at]}q`).join(" ");
    expect(await idsOf([tool("a.zebra")], `${words} zebra`)).toEqual(["a.zebra"]);
    expect(await idsOf([tool("a.zebra")], `${words} wpq zebra`)).toEqual([]);
  });

  it("texts of any kind are read in time that their length bounds", async () => {
    const cyclic: Record<string, unknown> = { type: "object" };
    cyclic["properties"] = { self: cyclic };
    const texts = [
      "x".repeat(100_000),
      "a b ".repeat(25_000),
      "Ab".repeat(50_000),
      "\u0301".repeat(100_000),
      "\ud800".repeat(100_000),
      "가".repeat(100_000),
    ];
    const hostile = texts.map((text, at) => tool(`h.t${at}`, text, { title: text, tags: [text] }));
    const started = cpuMs();
    const all = [...hostile, tool("h.zebra"), tool("h.__proto__"), tool("h.constructor")];
    expect(await idsOf(all, "zebra")).toEqual(["h.zebra"]);
    for (const text of texts) await idsOf(all, text);
    expect(await idsOf(all, "__proto__ constructor", { limit: 3 })).toContain("h.constructor");
    expect(cpuMs() - started).toBeLessThan(4_000);
  });

  it("10,000 operations with much to say are searched in moments", async () => {
    const words = Array.from({ length: 400 }, (_, at) => `word${at * 7}`).join(" ");
    const many = Array.from({ length: 10_000 }, (_, at) => tool(`many.op${at}`, `Number ${at}. ${words}`));
    const search = new OperationSearch();
    const started = cpuMs();
    expect((await search.find(many, "op9999", { limit: 1 })).map(({ id }) => id)).toEqual(["many.op9999"]);
    for (const asked of ["number word7", "op1234 nmber", "word7 word14 word21 create delete list"]) {
      await search.find(many, asked, { limit: 20 });
    }
    expect(cpuMs() - started).toBeLessThan(20_000);
  });
});
