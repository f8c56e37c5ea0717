import { describe, expect, it } from "vitest";
import { createMemoryIo } from "../../test/memory-io.ts";
import { nearestNames } from "../core/text/nearest-name.ts";
import { parseDuration, parseWholeNumber } from "./flags.ts";
import { describeMissing } from "./session/find-operation.ts";
import { sourcesFor } from "./session/session.ts";
import { splitCommandLine, targetConfig } from "./session/target-config.ts";

describe("times and numbers of flags", () => {
  it.each([
    ["250", 250_000],
    ["0.5", 500],
    ["250ms", 250],
    ["5s", 5_000],
    ["1.5s", 1_500],
    ["2m", 120_000],
    ["2147483647ms", 2_147_483_647],
  ])("%s is %i ms", (text, ms) => expect(parseDuration(text, "--timeout")).toBe(ms));

  it.each(["", "0", "-1", "5x", "1e3", "2147483648ms", "NaN", "s"])("%j is no time", (text) => {
    expect(() => parseDuration(text, "--timeout")).toThrow("--timeout takes a time such as 500ms, 5s or 2m");
  });

  it("are kept within their bounds", () => {
    expect(parseWholeNumber("65535", "--port", [0, 65_535])).toBe(65_535);
    for (const text of ["65536", "-1", "80a", "1.5", ""])
      expect(() => parseWholeNumber(text, "--port", [0, 65_535])).toThrow("--port takes a whole number");
  });
});

describe("a command line in one text", () => {
  it.each([
    ["npx -y server .", ["npx", "-y", "server", "."]],
    [`node "a b.js" 'c "d"' e\\ f`, ["node", "a b.js", 'c "d"', "e f"]],
    [`x ""`, ["x", ""]],
    ["C:\\tools\\x.exe a", ["C:\\tools\\x.exe", "a"]],
    ["  ", []],
  ])("%s is split as shells do", (line, words) => expect(splitCommandLine(line)).toEqual(words));

  it("says that a quote is not closed", () => {
    expect(() => splitCommandLine('a "b')).toThrow("not closed");
  });
});

describe("nearest names", () => {
  const known = ["parcel.track", "parcel.list", "github.repos/get", "depot.take"];

  it("are found by slips, by the part after the dot, and by what they contain", () => {
    expect(nearestNames("parcel.trak", known)[0]).toBe("parcel.track");
    expect(nearestNames("parcel.tarck", known)[0]).toBe("parcel.track");
    expect(nearestNames("track", known)).toEqual(["parcel.track"]);
    expect(nearestNames("zzz", known)).toEqual([]);
    expect(nearestNames("x".repeat(10_000), known)).toEqual([]);
  });

  it("are names of which at most a third differs, the same namespace first, and the same name elsewhere", () => {
    expect(nearestNames("parcel.list", ["api.parcel.list", "depot.stock"])).toEqual(["api.parcel.list"]);
    expect(nearestNames("parcel.lst", ["api.parcel.list", "api.depot.take"])).toEqual(["api.parcel.list"]);
    expect(nearestNames("depot.lists", ["parcel.list", "depot.list", "depo.lists"])[0]).toBe("depot.list");
    expect(nearestNames("shop.list", ["parcel.list", "parcel.take"])).toEqual(["parcel.list"]);
    expect(
      nearestNames("get_billing_thing0", [
        "shop.get_billing_thing12",
        "shop.get_billing_thing16",
        "shop.get_billing_thing2",
        "shop.get_billing_thing0",
      ])[0],
    ).toBe("shop.get_billing_thing0");
    expect(nearestNames("github.create", ["github.create_issue", "gitlab.createissue"])).toEqual([
      "github.create_issue",
    ]);
    expect(nearestNames("abcdef", ["abcdxy", "abcxyz"])).toEqual(["abcdxy"]);
    expect(nearestNames("order.track", ["parcel.book", "depot.stock", "order.x"])).toEqual([]);
  });

  it("are told in one sentence", () => {
    expect(describeMissing("a.b", [])).toBe(
      'There is no operation "a.b"; "waybill list" shows what there is.',
    );
    expect(describeMissing("a.b", ["a.c", "a.d"])).toBe(
      'There is no operation "a.b"; did you mean "a.c" or "a.d"?',
    );
  });
});

describe("a single target", () => {
  const io = createMemoryIo({ env: { WAYBILL_TOKEN: "gateway-token", OTHER: "other-token" } });

  it("is an MCP server by command or address, a document, or a gateway", () => {
    expect(targetConfig(io, { mcp: "node 'a b.js'" })).toEqual({
      mcpServers: { mcp: { command: "node", args: ["a b.js"] } },
    });
    expect(targetConfig(io, { mcp: "https://x.example/mcp", tokenEnv: "OTHER" })).toEqual({
      mcpServers: { mcp: { url: "https://x.example/mcp", bearer: "other-token" } },
    });
    expect(targetConfig(io, { mcp: "npx -y far", timeout: 30_000 })).toEqual({
      mcpServers: { mcp: { command: "npx", args: ["-y", "far"] } },
    });
    expect(targetConfig(io, { mcp: "npx -y far", timeout: 30_001 })).toEqual({
      mcpServers: { mcp: { command: "npx", args: ["-y", "far"], connectTimeoutMs: 30_001 } },
    });
    expect(targetConfig(io, { openapi: "a.json" })).toEqual({ openapi: { api: { document: "a.json" } } });
    const local = { openapi: "a.json", baseUrl: "http://localhost:3000/${A}", allowPrivate: true };
    expect(targetConfig(io, local)).toEqual({
      openapi: { api: { document: "a.json", baseUrl: "http://localhost:3000/$${A}", allowPrivate: true } },
    });
    expect(targetConfig(io, { url: "http://127.0.0.1:4100/mcp" })).toEqual({
      openapi: {
        gateway: {
          document: "http://127.0.0.1:4100/openapi.json",
          keepIds: true,
          auth: { bearer: "gateway-token" },
        },
      },
    });
    expect(targetConfig(io, {})).toBeUndefined();
  });

  it("gets no token that was meant for another, and no reference is followed", () => {
    expect(JSON.stringify(targetConfig(io, { mcp: "https://x.example/mcp" }))).not.toContain("token");
    expect(targetConfig(io, { openapi: "${HOME}" })).toEqual({ openapi: { api: { document: "$${HOME}" } } });
  });

  it.each([
    [{ mcp: "a", url: "http://x" }, "--mcp and --url cannot be given together."],
    [{ url: "x" }, "--url takes an address"],
    [{ mcp: " " }, "--mcp needs an address"],
    [{ url: "http://x", tokenEnv: "MISSING" }, "MISSING (--token-env) is not set"],
    [{ tokenEnv: "OTHER" }, "--token-env goes with"],
    [{ allowPrivate: true }, "--allow-private goes with --openapi"],
    [{ config: "a.json", allowPrivate: true }, "--allow-private goes with --openapi"],
    [{ mcp: "a", baseUrl: "http://x" }, "--base-url goes with --openapi"],
    [{ url: "http://x", baseUrl: "http://x", allowPrivate: true }, "--base-url and --allow-private go with"],
    [{ openapi: "a.json", baseUrl: "here" }, "--base-url takes an address"],
  ])("%j is a mistake", (flags, message) => expect(() => targetConfig(io, flags)).toThrow(message));
});

describe("the sources of one operation", () => {
  const config = {
    mcpServers: { files: { command: "x" }, "odd name": { command: "x" } },
    openapi: { files: { document: "x" }, far: { document: "x", keepIds: true } },
  };
  const chosen = (id: string) =>
    ["files", "odd_name", "files_2", "far", "local", "bus"].filter(sourcesFor(id, config));

  it("are the one of its namespace, else those that hold several", () => {
    expect(chosen("files.read")).toEqual(["files", "far"]);
    expect(chosen("odd_name.x")).toEqual(["odd_name", "far"]);
    expect(chosen("files_2.read")).toEqual(["files_2", "far"]);
    expect(chosen("parcel.track")).toEqual(["far", "local", "bus"]);
    expect(chosen("nodot")).toHaveLength(6);
  });
});
