import { describe, expect, it } from "vitest";
import { bytesOf, fileName, mediaOf, mediaOfBlock } from "./content-view.tsx";

describe("mediaOf", () => {
  it("shows images and plays sounds of known types", () => {
    expect(mediaOf("AAAA", "image/png", "x")).toMatchObject({ kind: "image", bytes: 3, base64: "AAAA" });
    expect(mediaOf("AAA=", "IMAGE/SVG+XML; charset=utf-8", "x")).toMatchObject({ kind: "image", bytes: 2 });
    expect(mediaOf("AA==", "audio/mpeg", "x")).toMatchObject({ kind: "audio", bytes: 1 });
  });

  it.each([
    ["AAAA", "text/html"],
    ["AAAA", "image/png,<script>"],
    ["AAAA", 'image/png" onload="x'],
    ["AAAA", "application/pdf"],
    ["AAAA", undefined],
    ["AAA", "image/png"],
    ["AA A", "image/png"],
    ["<svg>", "image/svg+xml"],
    ["A".repeat(12_000_000), "image/png"],
  ])("takes %.12s of type %s for a file", (base64, type) => {
    expect(mediaOf(base64, type, "x").kind).toBe("file");
  });
});

describe("mediaOfBlock", () => {
  it("reads images, sounds and resources with bytes, and nothing else", () => {
    expect(mediaOfBlock({ type: "image", data: "AAAA", mimeType: "image/png" }, 0)?.name).toBe("Image 1");
    expect(
      mediaOfBlock({ type: "resource", resource: { uri: "file:///a.pdf", blob: "AAAA" } }, 0)?.kind,
    ).toBe("file");
    for (const block of [
      null,
      1,
      { type: "image" },
      { type: "image", data: 1 },
      { type: "text", text: "x" },
      { type: "resource" },
    ]) {
      expect(mediaOfBlock(block, 0)).toBeUndefined();
    }
  });
});

describe("bytesOf", () => {
  it("finds bytes in the form that JSON holds them", () => {
    expect(bytesOf({ $waybill: ["bytes", "AAAA"] })).toBe("AAAA");
    for (const data of [null, {}, { $waybill: 1 }, { $waybill: ["bigint", "1"] }, ["bytes", "AAAA"]]) {
      expect(bytesOf(data)).toBeUndefined();
    }
  });
});

describe("fileName", () => {
  it.each([
    ["file:///a/b.pdf", "application/pdf", "b.pdf"],
    ["../../.bashrc", "text/plain", "bashrc.plain"],
    ["Image 1", "image/png", "Image-1.png"],
    ["", "weird", "file.bin"],
    ["a\u202egnp.exe", "image/svg+xml", "a-gnp.exe"],
    ["x", "image/svg+xml", "x.svg"],
  ])("makes a plain name of %j", (name, type, expected) => {
    expect(fileName(name, type)).toBe(expected);
  });
});
