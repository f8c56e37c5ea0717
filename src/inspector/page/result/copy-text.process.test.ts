import { describe, expect, it } from "vitest";
import { hello, operation, origin } from "../../../../test/copied-call.ts";
import { runInShell, SHELLS } from "../../../../test/installed-shells.ts";
import { asCurl, pastedWord } from "./copy-as.tsx";

/** What bash makes of a word. */
function readByShell(word: string, shell = "bash"): string {
  return runInShell(shell, `printf %s ${word}`);
}

describe("shellWord", () => {
  const texts = [
    "plain",
    "",
    "it's",
    "''",
    "a b\tc",
    "two\nlines",
    '$HOME `id` $(id) \\ " ! * ?',
    "Zürich 🚚 東京",
    "\u001b[201~; rm -rf ~\r",
    "a\u202eb\u0085!'\\",
    "!!",
    "~",
    "#x",
    "-n",
    "x\\'; touch pwned #",
    "x\\\\'; touch pwned #\\",
    '{"a":"\\\\n\\\\"}',
  ];
  it.each(texts)("is read by a shell as what it was: %j", (text) => {
    const word = pastedWord(text);
    // fish has no escapes of this kind, and refuses the whole line.
    for (const shell of SHELLS.filter((name) => name !== "fish" || !word.startsWith("$")))
      expect([shell, readByShell(word, shell)]).toEqual([shell, text]);
  });
});

describe("asCurl", () => {
  const properties = { to: { type: "string" }, limit: { type: "integer" }, tags: { type: "array" } };

  it.each([{ tags: [] }, { to: null }, { to: { a: 1 } }, { other: 1 }, [1], "text", { to: "\ud800" }])(
    "sends what an address cannot say to /call: %j",
    (value) => {
      const text = asCurl({
        operation: operation({ inputSchema: { properties } }),
        input: { value },
        hello,
        origin,
      });
      expect(text).toContain("http://127.0.0.1:4100/call");
      const [, body = ""] = text?.split("--data-raw ") ?? [];
      expect(JSON.parse(readByShell(body))).toEqual({ operation: "parcel.list", input: value });
    },
  );

  it("posts the input of a mutation", () => {
    const sent = operation({ type: "mutation", http: { method: "POST", path: "/api/parcel/list" } });
    const value = JSON.parse(`{"__proto__": 1, "it's": "a\\nb\\u009b"}`) as unknown;
    const text = asCurl({ operation: sent, input: { value }, hello, origin });
    const [, body = ""] = text?.split("--data-raw ") ?? [];
    expect(JSON.stringify(JSON.parse(readByShell(body)))).toBe(JSON.stringify(value));
    expect(asCurl({ operation: sent, hello, origin })).toContain("-X POST");
  });
});
