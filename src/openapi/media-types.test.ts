import { describe, expect, it } from "vitest";
import { isSequence, parseMediaType } from "./media-types.ts";

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
    const started = performance.now();
    for (let i = 0; i < 1_000; i++) parseMediaType(`text/plain${`; ${" ".repeat(20)}`.repeat(40)}${i}`);
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  it("RE-26 knows which bodies come item by item", () => {
    expect((["events", "lines", "records"] as const).every(isSequence)).toBe(true);
    expect((["json", "wire", "text", "bytes"] as const).some(isSequence)).toBe(false);
  });
});
