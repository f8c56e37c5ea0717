import { describe, expect, it } from "vitest";
import {
  documentMistake,
  parseNamedTarget,
  serverMistake,
  suggestName,
  toServerConfig,
} from "./named-target.ts";

describe("name=target", () => {
  it("is split at the first sign of equality", () => {
    expect(parseNamedTarget("--openapi", "shop=https://a.example/?x=1")).toEqual({
      name: "shop",
      target: "https://a.example/?x=1",
    });
  });

  it.each(["", "shop", "=x", "shop=", "my shop=x", `${"n".repeat(65)}=x`])(
    "is refused when it is none: %j",
    (text) => {
      expect(() => parseNamedTarget("--mcp", text)).toThrow("--mcp takes a name");
    },
  );
});

describe("a server that is named", () => {
  it("is a command line or an address", () => {
    expect(toServerConfig("https://mcp.example/mcp")).toEqual({
      type: "http",
      url: "https://mcp.example/mcp",
    });
    expect(toServerConfig('npx -y "a b" ${HOME}')).toEqual({
      command: "npx",
      args: ["-y", "a b", "${HOME}"],
    });
    expect(toServerConfig("serve")).toEqual({ command: "serve" });
  });

  it.each([
    ["", "Give a command line"],
    ["npx 'a", "not closed"],
    ["npx ${a", "not closed"],
    ["https://", "not a URL"],
  ])("is looked at first: %j", (target, mistake) => {
    expect(serverMistake(target)).toContain(mistake);
    expect(serverMistake("npx a")).toBeUndefined();
  });
});

describe("a document that is named", () => {
  it("is a URL, or a file that is there", () => {
    expect(documentMistake("https://a.example/openapi.json", "/")).toBeUndefined();
    expect(documentMistake("package.json", process.cwd())).toBeUndefined();
    expect(documentMistake("nowhere.yaml", process.cwd())).toBe("There is no file nowhere.yaml.");
    expect(documentMistake(" ", process.cwd())).toBe("Give a path or a URL.");
  });
});

describe("a name for a source", () => {
  it.each([
    ["npx -y @modelcontextprotocol/server-filesystem .", "filesystem"],
    ["uvx mcp-server-git", "git"],
    ["node ./tools/weather.js", "weather"],
    ["https://api.github.com/openapi.json", "github"],
    ["https://mcp.linear.app/mcp", "linear"],
    ["http://127.0.0.1:8080/mcp", "source"],
    ["./specs/pet store.yaml", "pet"],
    ["--", "source"],
  ])("is made of %j", (target, name) => {
    expect(suggestName(target, [])).toBe(name);
    expect(suggestName(target, [name, `${name}-2`])).toBe(`${name}-3`);
  });
});
