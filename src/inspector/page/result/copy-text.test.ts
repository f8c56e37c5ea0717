import { describe, expect, it } from "vitest";
import { hello, operation, origin } from "../../../../test/copied-call.ts";
import { asCommand, asCurl, asTypeScript, pastedWord } from "./copy-as.tsx";

describe("shellWord", () => {
  it("holds nothing that a terminal acts on", () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(pastedWord("\u001b[201~\r\u009b")).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  });

  it("leaves words alone that need no quotes", () => {
    expect(pastedWord("http://127.0.0.1:4100/api")).toBe("http://127.0.0.1:4100/api");
    expect(pastedWord("a?b")).toBe("'a?b'");
  });
});

describe("asCurl", () => {
  const properties = { to: { type: "string" }, limit: { type: "integer" }, tags: { type: "array" } };

  it("writes a simple input of a query into the address", () => {
    const call = { operation: operation({ inputSchema: { properties } }), hello, origin };
    expect(asCurl({ ...call, input: { value: { to: "Zü rich&", limit: 3, tags: ["a", "b"] } } })).toBe(
      "curl \\\n  'http://127.0.0.1:4100/api/parcel/list?to=Z%C3%BC%20rich%26&limit=3&tags=a&tags=b'",
    );
    expect(asCurl(call)).toBe("curl \\\n  http://127.0.0.1:4100/api/parcel/list");
    expect(asCurl({ ...call, input: { value: {} } })).toBe(
      "curl \\\n  http://127.0.0.1:4100/api/parcel/list",
    );
  });

  it("asks for events and sends the token where they are wanted", () => {
    const text = asCurl({
      operation: operation({ type: "subscription" }),
      hello: { ...hello, isAuthOn: true },
      origin,
    });
    expect(text).toContain("curl -N");
    expect(text).toContain("-H 'accept: text/event-stream'");
    expect(text).toContain('-H "authorization: Bearer $WAYBILL_TOKEN"');
  });

  it("is nothing for what is not served over HTTP", () => {
    const { http: _http, ...rest } = operation();
    expect(asCurl({ operation: rest, hello, origin })).toBeUndefined();
  });
});

describe("asCommand", () => {
  it("names the gateway that runs, and gives the input as one word", () => {
    expect(asCommand({ operation: operation(), input: { value: { to: "it's" } }, hello, origin })).toBe(
      `npx --no waybill call parcel.list --url http://127.0.0.1:4100 '{"to":"it'\\''s"}'`,
    );
  });

  it("takes the flags that name a running gateway as they are", () => {
    const command = { words: "waybill", flags: "--url http://gw:1" };
    expect(asCommand({ operation: operation(), hello: { ...hello, command }, origin })).toBe(
      "waybill call parcel.list --url http://gw:1",
    );
  });

  it("keeps a negative number from being a flag", () => {
    expect(asCommand({ operation: operation(), input: { value: -5 }, hello, origin })).toMatch(/ -- -5$/);
  });
});

describe("asTypeScript", () => {
  it("calls, or follows, with the input as it is", () => {
    const call = { hello, origin, input: { value: { a: 1 } } };
    expect(asTypeScript({ ...call, operation: operation() })).toContain(
      'client.call("parcel.list", {\n  "a": 1\n})',
    );
    expect(asTypeScript({ ...call, operation: operation({ type: "subscription" }) })).toContain("for await");
  });

  it("gives an empty object where one is wanted and no input is given", () => {
    const inputSchema = { type: "object" };
    const http = { method: "POST", path: "/api/parcel/list" };
    const call = { operation: operation({ inputSchema, http }), hello, origin };
    expect(asTypeScript(call)).toContain('client.call("parcel.list", {})');
    expect(asCurl(call)).toContain("--data-raw '{}'");
  });

  it("does not let a member become the prototype", () => {
    const value = JSON.parse('{"__proto__": {"a": 1}}') as unknown;
    const text = asTypeScript({ operation: operation(), input: { value }, hello, origin });
    expect(text).toContain(String.raw`JSON.parse("{\"__proto__\":{\"a\":1}}")`);
  });
});
