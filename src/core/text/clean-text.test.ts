import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { runs } from "../../../test/runs.ts";
import { cleanText, describeFindings, escapeHidden } from "./clean-text.ts";

const tags = (text: string) =>
  Array.from(text, (letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join("");

const isHidden = (code: number) =>
  (code < 0x20 && code !== 9 && code !== 10) ||
  (code >= 0x7f && code <= 0x9f) ||
  (code >= 0x202a && code <= 0x202e) ||
  (code >= 0xe0000 && code <= 0xe0fff) ||
  code >= 0xf0000;

describe("cleanText", () => {
  it.each([
    ["plain text", "Adds two numbers.\n\tOne line more."],
    ["letters of other scripts", "Привет, 世界, 123 €"],
    ["an emoji of several people", "👩‍👩‍👧‍👦 and 🏳️‍🌈 and ❤️"],
    ["a keycap", "1️⃣"],
    ["the flag of Scotland", `\u{1F3F4}${tags("gbsct")}\u{E007F}`],
    ["a Persian word", "می\u200Cخواهم"],
    ["a Hindi word", "क\u094D\u200Dष"],
  ])("Mcp: leaves %s alone", (_, text) => expect(cleanText(text)).toEqual({ text, findings: [] }));

  it.each([
    ["control", "a\u0000b\u0008\u007F\u0085c", "abc", 4],
    ["control", "over\rwritten", "overwritten", 1],
    ["control", "two\u2028lines", "two\nlines", 1],
    ["escape", "\u001B[31mred\u001B[0m", "red", 2],
    ["escape", "\u001B]0;title\u0007x\u001B]8;;http://e\u001B\\link", "xlink", 2],
    ["escape", "a\u009B2Jb\u001Bcd\u001B", "abd", 3],
    ["escape", "\u001B]0;never ended", "", 1],
    ["zero-width", "ig\u200Bno\u2060re\uFEFF", "ignore", 3],
    ["zero-width", "a\u200Db c\u200C", "ab c", 2],
    ["zero-width", "a\u{1BCA0}\u{1BCA3}\uFFF0\uFFF8\u{13430}\u{1343F}\u2800\u{16FE4}\u{1D159}b", "ab", 9],
    ["zero-width", "ok\u180B\u200D\u180B\u200C\u180B", "ok", 5],
    ["zero-width", "\u17B4\u200C\u17B5", "", 3],
    ["bidi", "\u202Etxt.exe\u202C \u2066x\u2069\u200F", "txt.exe x", 5],
    ["tag", `safe${tags("ignore all")}`, "safe", 10],
    ["tag", `\u{1F3F4}${tags("gbxxx")}\u{E007F}`, "\u{1F3F4}", 6],
    ["tag", "x\u{E0080}\u{E01F0}\u{E0FFF}", "x", 3],
    ["variation", "x\uFE01\u{E0101}\u{E01EF}", "x", 3],
    ["variation", "❤\uFE0F\uFE0F\uFE0F", "❤\uFE0F", 2],
    ["private-use", "\uE000\u{F0000}\u{10FFFD}x", "x", 3],
    ["surrogate", "a\uD800b\uDC00", "a\uFFFDb\uFFFD", 2],
    ["noncharacter", "a\uFFFE\uFDD0\u{1FFFF}\u{10FFFE}", "a", 4],
  ])("Mcp: takes %s characters out of %j", (kind, text, expected, count) => {
    expect(cleanText(text)).toEqual({ text: expected, findings: [{ kind, count }] });
  });

  it("Mcp: takes a line break of two characters for one, without a word", () => {
    expect(cleanText("a\r\nb")).toEqual({ text: "a\nb", findings: [] });
  });

  it("Mcp: counts each kind", () => {
    const { findings } = cleanText("\u0000\u200B\u0001");
    expect(findings).toEqual([
      { kind: "control", count: 2 },
      { kind: "zero-width", count: 1 },
    ]);
    expect(describeFindings(findings)).toBe("2 control, 1 zero-width");
  });

  it("Mcp: is done once it is done: whatever is left is clean, and never longer", () => {
    const unit = fc.oneof(
      fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
      fc.constantFrom(
        "\u001B",
        "[",
        "]",
        "3",
        "m",
        "\u200D",
        "\uFE0F",
        "❤",
        "\u{1F3F4}",
        "\u{E0067}",
        "\u202E",
      ),
    );
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 30 }), (text) => {
        const once = cleanText(text).text;
        expect(once.length).toBeLessThanOrEqual(text.length);
        const controls = Array.from(once, (letter) => letter.codePointAt(0) as number).filter(isHidden);
        expect(controls).toEqual([]);
      }),
      runs(500),
    );
  });

  it("Mcp: keeps no joiner or selector for the sake of something that is taken out", () => {
    const found = [
      "\u061C\u200C\u061C\u200D\u061C",
      "a\uFE0F\u200D😀",
      "\u001B[1\uFE0Fm",
      "क\u200D\u200B\u200Dष",
    ];
    expect(found.map((text) => cleanText(text).text)).toEqual(["", "a😀", "m", "क\u200Dष"]);
  });

  it("Mcp: cleaning twice is cleaning once, and no ignorable character survives where it means nothing", () => {
    const alphabet =
      "\u180B\u200C\u200D\u061C\u17B4\uFE0E\uFE0F\u200B\u202E\u2800\u00AD\uFEFF\u001B\u009B[]m1;\r\n\u2028aक\u094Dمᠠ😀❤👩🏽\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E007F}\u{E0101}\u{1BCA0}\uE000";
    const unit = fc.constantFrom(...alphabet, "\uD83D", "\uDE00", `\u{1F3F4}${tags("gbeng")}\u{E007F}`);
    const flags = /\u{1F3F4}[\u{E0061}-\u{E007A}]{5}\u{E007F}/gu;
    const ignorable = /(?!\u200C|\u200D|\uFE0E|\uFE0F)\p{Default_Ignorable_Code_Point}/u;
    const idle =
      /(?<!\p{Emoji})(?:\uFE0E|\uFE0F)|(?:\u200C|\u200D)(?:\u200C|\u200D|\uFE0E|\uFE0F)|(?:^|[am;])(?:\u200C|\u200D)/u;
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 20 }), (text) => {
        const once = cleanText(text);
        expect(cleanText(once.text)).toEqual({ text: once.text, findings: [] });
        expect(once.text.replace(flags, "")).not.toMatch(ignorable);
        expect(once.text).not.toMatch(idle);
      }),
      runs(3_000),
    );
  });

  it.each(["\u001B]", "\u001B[", "\u001B[0", "\u200D", "\u{1F3F4}\u{E0067}\u{E0062}", "\u001B[ ", "\u0090x"])(
    "Mcp: takes linear time for a million of %j",
    (piece) => {
      const startedAt = cpuMs();
      cleanText(piece.repeat(1_000_000 / piece.length));
      expect(cpuMs() - startedAt).toBeLessThan(10_000);
    },
  );
});

describe("escapeHidden", () => {
  it("X-5 shows everything that JSON holds, and means the same", () => {
    const anything = fc.string({
      unit: fc.oneof(fc.constantFrom(...HIDING), fc.string({ unit: "binary", size: "small" })),
    });
    fc.assert(
      fc.property(anything, (text) => {
        const json = escapeHidden(JSON.stringify({ [text]: text }));
        expect(cleanText(json).text).toBe(json);
        expect(JSON.parse(json)).toEqual({ [text]: text });
      }),
      runs(500),
    );
  });

  it("X-5 keeps emoji, and words of scripts with joiners, as they are", () => {
    for (const text of [
      "\u{1F469}\u200D\u{1F680}",
      "\u2764\uFE0F",
      "\u0645\u06CC\u200C\u062E\u0648\u0627\u0647\u0645",
    ])
      expect(escapeHidden(text)).toBe(text);
    expect(escapeHidden("a\u200Db\u{E0041}")).toBe("a\\u200db\\udb40\\udc41");
  });
});

const HIDING = [
  "\u0085",
  "\u009b",
  "\u202e",
  "\u2066",
  "\u200b",
  "\u200d",
  "\ufe0f",
  "\u2028",
  "\u2800",
  "\ue000",
  "\u{E0041}",
  "\u{F0000}",
  "\ufdd0",
  "\ud800",
];
