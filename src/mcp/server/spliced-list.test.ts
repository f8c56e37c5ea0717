import { describe, expect, it } from "vitest";
import { spliced, splicedJsonOf, toSplicedList } from "./spliced-list.ts";

describe("a list that is text already", () => {
  const json = '[{"name":"a"},{"name":"b $& $1"}]';

  it("Mcp: is put into the message that was written with it, once and unchanged", () => {
    const tools = toSplicedList(json, undefined);
    const message = JSON.stringify({ jsonrpc: "2.0", id: 1, result: { tools, nextCursor: "x" } });
    expect(spliced(message, splicedJsonOf(tools) ?? "")).toBe(
      `{"jsonrpc":"2.0","id":1,"result":{"tools":${json},"nextCursor":"x"}}`,
    );
  });

  it("Mcp: belongs to the request it answers, and to no other list or request", () => {
    const request = new Request("http://127.0.0.1/");
    toSplicedList(json, request);
    expect(splicedJsonOf(request)).toBe(json);
    expect(splicedJsonOf(new Request("http://127.0.0.1/"))).toBeUndefined();
    for (const other of [undefined, null, 5, "x", [], {}]) expect(splicedJsonOf(other)).toBeUndefined();
  });

  it("Mcp: leaves a message alone that has no place for it", () => {
    expect(spliced('{"error":1}', json)).toBe('{"error":1}');
  });
});
