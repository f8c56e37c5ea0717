import { describe, expect, it } from "vitest";
import { cpuMs } from "../../test/cpu-ms.ts";
import {
  essenceOf,
  isSequence,
  mediaKindOf,
  parseMediaType,
  parseSendableType,
  readDeclaredType,
  writeMediaType,
} from "./media-types.ts";

describe("media types", () => {
  it.each([
    ["application/json", "json"],
    ["Application/JSON; charset=utf-8", "json"],
    ["application/problem+json", "json"],
    ["application/vnd.api+json; profile=x", "json"],
    ["text/json", "json"],
    ["application/vnd.waybill.data+json", "wire"],
    ["text/plain", "text"],
    ["text/html;charset=iso-8859-1", "text"],
    ["application/xml", "text"],
    ["image/svg+xml", "text"],
    ["application/yaml", "text"],
    ["application/javascript", "text"],
    ["application/x-www-form-urlencoded", "text"],
    ["text/event-stream", "events"],
    ["application/x-ndjson", "lines"],
    ["application/stream+json", "lines"],
    ["application/json-seq", "records"],
    ["application/geo+json-seq", "records"],
    ["application/octet-stream", "bytes"],
    ["image/png", "bytes"],
    ["application/jsonish", "bytes"],
    ["", "bytes"],
    ["nonsense", "bytes"],
    ["a/b/c", "bytes"],
    [`text/${"x".repeat(2_000)}`, "bytes"],
  ])("RE-26 reads %s as %s", (value, kind) => {
    expect(parseMediaType(value).kind).toBe(kind);
  });

  it("RE-26 finds the character set, quoted or not", () => {
    expect(parseMediaType('text/plain; format=flowed; charset="UTF-16LE"').charset).toBe("utf-16le");
    expect(parseMediaType("text/plain;CHARSET=latin1").charset).toBe("latin1");
    expect(parseMediaType("text/plain; xcharset=latin1").charset).toBeUndefined();
  });

  it("RE-26 takes no longer for a header that is made to be slow", () => {
    const started = cpuMs();
    for (let i = 0; i < 1_000; i++) parseMediaType(`text/plain${`; ${" ".repeat(20)}`.repeat(40)}${i}`);
    expect(cpuMs() - started).toBeLessThan(5_000);
  });

  it("RE-26 knows which bodies come item by item", () => {
    expect((["events", "lines", "records"] as const).every(isSequence)).toBe(true);
    expect((["json", "wire", "text", "bytes"] as const).some(isSequence)).toBe(false);
  });

  it.each([
    ["application/json", "json"],
    ["application/vnd.waybill.data+json", "json"],
    ["text/event-stream", "events"],
    ["application/x-jsonl", "lines"],
    ["application/geo+json-seq", "records"],
    ["application/x-www-form-urlencoded", "form"],
    ["multipart/related", "multipart"],
    ["image/svg+xml", "xml"],
    ["application/openapi+yaml", "text"],
    ["text/*", "text"],
    ["application/*", "range"],
    ["*/*", "range"],
    ["image/png", "bytes"],
  ])("RE-25 writes %s as %s", (essence, kind) => {
    expect(mediaKindOf(essence)).toBe(kind);
  });

  it("RE-25 takes apart what can be sent, and writes it again", () => {
    const type = parseSendableType(' Text/Plain ; Charset=UTF-8;format="a b" ');
    expect(type).toEqual({
      essence: "text/plain",
      parameters: [
        ["charset", "UTF-8"],
        ["format", '"a b"'],
      ],
    });
    expect(writeMediaType(type ?? readDeclaredType(""), ["charset"])).toBe('text/plain; format="a b"');
  });

  it.each([
    "",
    "text",
    "text/plain;",
    "text/plain; a",
    "text/pl\u00e4in",
    "a/b\r\nc: d",
    `a/${"b".repeat(254)}`,
  ])("RE-25 sends nothing as %j", (text) => expect(parseSendableType(text)).toBeUndefined());

  it("RE-25 makes the best of what a document says", () => {
    expect(readDeclaredType("Text/CSV; header").essence).toBe("text/csv");
    expect(readDeclaredType("json").essence).toBe("application/json");
    expect(readDeclaredType("whatever").essence).toBe("application/octet-stream");
    expect(essenceOf(" A/B ;c=d")).toBe("a/b");
  });
});
