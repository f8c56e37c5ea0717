import { describe, expect, it } from "vitest";
import { clientBlocks } from "./client-block.ts";

const URL_HERE = "http://127.0.0.1:4100/mcp";

describe("what clients need", () => {
  it("names the address for each program, and no token where none is asked for", () => {
    const blocks = clientBlocks({ name: "post office", url: URL_HERE, isAuthOn: false });
    expect(blocks.map(({ client }) => client)).toEqual(["claude-code", "cursor", "vscode", "codex"]);
    for (const { text } of blocks) {
      expect(text).toContain(URL_HERE);
      expect(text).not.toContain("WAYBILL_TOKEN");
    }
    const [shell, cursor, vscode] = blocks.map(({ text }) => text);
    expect(shell).toBe(`claude mcp add --transport http post-office ${URL_HERE}`);
    expect(JSON.parse(cursor ?? "")).toEqual({ mcpServers: { "post-office": { url: URL_HERE } } });
    expect(JSON.parse(vscode ?? "")).toEqual({ servers: { "post-office": { type: "http", url: URL_HERE } } });
  });

  it("names the variable of the token, never a token", () => {
    for (const { text } of clientBlocks({ name: "x", url: URL_HERE, isAuthOn: true }))
      expect(text).toContain("WAYBILL_TOKEN");
  });

  it("takes nothing of a name that a shell or TOML would read", () => {
    const name = 'a"; rm -rf / #\n[x]$(y)`z`';
    for (const { text } of clientBlocks({ name, url: URL_HERE, isAuthOn: false }))
      expect(text).not.toMatch(/rm -rf|\$\(|`|; /);
    expect(clientBlocks({ name: "***", url: URL_HERE, isAuthOn: false })[0]?.text).toContain(" waybill ");
  });
});
