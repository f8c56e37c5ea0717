import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { safeLine, safeText } from "../../core/text/clean-text.ts";
import { createStyle, paintJson, toSafeJson, wantsColors } from "./style.ts";
import { cutToWidth, displayWidth, padToWidth, renderTable } from "./table.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: what terminals act on is what must not be there
const ACTED_ON = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const anyText = fc.string({ unit: "binary" });

describe("safe text", () => {
  it("holds nothing that a terminal acts on, whatever came in", () => {
    fc.assert(fc.property(anyText, (text) => !ACTED_ON.test(safeText(text))));
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("\u001b[", "31m", "\u009b", "\u0007", "]0;x", "a", "\n", "\u202e")),
        (parts) => {
          return !ACTED_ON.test(safeText(parts.join("")));
        },
      ),
    );
  });

  it("keeps lines, and makes one line of them where that is asked for", () => {
    expect(safeText("one\r\ntwo\tthree")).toBe("one\ntwo\tthree");
    expect(safeLine("one\n two\u001b[2J  three")).toBe("one two three");
    expect(safeLine("a".repeat(10), 10)).toBe("a".repeat(10));
    expect(safeLine("a".repeat(11), 10)).toBe(`${"a".repeat(9)}…`);
  });
});

describe("safe JSON", () => {
  it("is the same value, with nothing in it that a terminal acts on", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        const text = toSafeJson(value);
        expect(text).not.toMatch(ACTED_ON);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
    expect(toSafeJson("\u007f\u202e\u{e0041}")).toBe('"\\u007f\\u202e\\udb40\\udc41"');
  });

  it("writes what JSON cannot hold in its wire form, and nothing as null", () => {
    expect(toSafeJson(undefined)).toBe("null");
    expect(toSafeJson({ n: 1n })).toContain("$waybill");
  });

  it("is painted without changing a character", () => {
    const style = createStyle({ isTTY: true }, {});
    const json = toSafeJson({ a: [1, -2.5e3, true, null], 'b"': "c: 1" }, 2);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is taken out
    expect(paintJson(json, style).replaceAll(/\u001b\[\d+m/g, "")).toBe(json);
    expect(paintJson(json, style)).not.toBe(json);
  });
});

describe("colours", () => {
  it.each([
    [{ isTTY: true }, {}, true],
    [{}, {}, false],
    [{ isTTY: true }, { NO_COLOR: "1" }, false],
    [{ isTTY: true }, { NO_COLOR: "" }, true],
    [{ isTTY: true }, { TERM: "dumb" }, false],
    [{}, { FORCE_COLOR: "1" }, true],
    [{ isTTY: true }, { FORCE_COLOR: "0" }, false],
    [{ isTTY: true }, { FORCE_COLOR: "1", NO_COLOR: "1" }, false],
  ])("of %j with %j are wanted: %j", (stream, env, wanted) => {
    expect(wantsColors(stream, env)).toBe(wanted);
  });
});

describe("the width of text", () => {
  it("counts wide characters and pictures twice, and marks not at all", () => {
    expect(["abc", "日本", "e\u0301", "👩‍👩‍👧", "🇵🇹", "…"].map(displayWidth)).toEqual([3, 4, 1, 2, 2, 1]);
  });

  it("is never more than what a text was cut to", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat(20), (text, columns) => {
        const line = safeLine(text);
        expect(displayWidth(cutToWidth(line, columns))).toBeLessThanOrEqual(columns);
      }),
    );
    expect(cutToWidth("日本語", 5)).toBe("日本…");
    expect(padToWidth("日本", 6)).toBe("日本  ");
  });
});

describe("a table", () => {
  const rows = [
    ["parcel.track", "Says where\na parcel is.\u001b[31m"],
    ["日本", "x".repeat(100)],
  ];
  const head = ["ID", "ABOUT"];

  it("never cuts the columns that are to stay whole", async () => {
    const id = "github.issues/list-for-authenticated-user";
    const options = { head, stream: { isTTY: true, columns: 52 }, env: { NO_COLOR: "1" } };
    const narrow = { ...options, stream: { isTTY: true, columns: 51 } };
    expect(await renderTable([[id, "x".repeat(100)]], { ...options, whole: 1 })).toContain(`${id}  xxxxxxx…`);
    expect(await renderTable([[id, "x".repeat(100)]], { ...narrow, whole: 1 })).toBe(`ID\n${id}`);
    options.stream.columns = 40;
    expect(await renderTable([[id, "x".repeat(100)]], options)).not.toContain(id);
  });

  it("is plain, aligned and whole in a pipe", async () => {
    expect(renderTable(rows, { head, stream: {} })).toBe(
      `ID            ABOUT\nparcel.track  Says where a parcel is.\n日本          ${"x".repeat(100)}`,
    );
  });

  it("is cut to the width of a terminal", async () => {
    const text = renderTable(rows, {
      head,
      stream: { isTTY: true, columns: 40 },
      env: { NO_COLOR: "1" },
    });
    const lines = text.split("\n");
    expect(lines).toHaveLength(3);
    for (const line of lines) expect(displayWidth(line)).toBeLessThan(40);
    expect(lines[2]).toMatch(/^日本 {10}x+…$/);
  });

  it("paints cells on a terminal alone", async () => {
    const cell = { text: "up", paint: (text: string) => `<${text}>` };
    const env = { NO_COLOR: "1" };
    expect(renderTable([[cell]], { head: ["S"], stream: {}, env })).toBe("S\nup");
    expect(renderTable([[cell]], { head: ["STATE"], stream: { isTTY: true, columns: 40 }, env })).toContain(
      "<up>",
    );
  });

  it("fits a terminal that is narrower than its columns", async () => {
    const text = renderTable(rows, { head, stream: { isTTY: true, columns: 5 }, env: {} });
    expect(text.split("\n")).toHaveLength(3);
  });
});
