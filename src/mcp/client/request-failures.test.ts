import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SourceSecrets } from "../../core/secrets/secret-mask.ts";
import { readError } from "../protocol/messages.ts";
import { codeOfHttpStatus, fromRpcError, isUnknownTool } from "./request-failures.ts";

const server = "MCP server x";
const secrets = new SourceSecrets();

describe("JSON-RPC errors", () => {
  it.each([
    [-32601, "tools/call", {}, "OPERATION_NOT_FOUND"],
    [-32602, "tools/call", {}, "VALIDATION_ERROR"],
    [-32002, "resources/read", {}, "NOT_FOUND"],
    [-32021, "tools/call", {}, "NOT_IMPLEMENTED"],
    [-32603, "tools/call", {}, "EXECUTION_ERROR"],
    [-32000, "tools/call", {}, "EXECUTION_ERROR"],
    [7, "tools/call", {}, "EXECUTION_ERROR"],
  ])("RE-23 turns %i of %s into the code of the table", (code, method, params, expected) => {
    expect(fromRpcError({ code, message: "m" }, { method, params, server, secrets }).code).toBe(expected);
  });

  it("RE-23 takes -32602 for a missing resource or prompt where it is named", () => {
    const read = { method: "resources/read", params: { uri: "a://b" }, server, secrets };
    const prompt = { method: "prompts/get", params: { name: "p" }, server, secrets };
    const error = { code: -32602, message: "Resource not found", data: { uri: "a://b" } };
    expect(fromRpcError(error, read).code).toBe("NOT_FOUND");
    expect(fromRpcError({ ...error, data: { uri: "a://c" } }, read).code).toBe("VALIDATION_ERROR");
    expect(fromRpcError({ code: -32602, message: "Prompt p not found" }, prompt).code).toBe("NOT_FOUND");
    expect(fromRpcError({ code: -32602, message: "Bad p" }, prompt).code).toBe("VALIDATION_ERROR");
  });

  it.each(["TOO_LARGE", "OUTPUT_INVALID"])("RE-23 knows %s of our own transport", (waybill) => {
    const error = { code: -32603, message: "", data: { waybill } };
    expect(fromRpcError(error, { method: "tools/call", server, secrets }).code).toBe(waybill);
  });

  it("X-11 passes the server's message on as its words, and the rest of its error in the cause alone", () => {
    for (const code of [-32000, -32602, -32603, 7]) {
      const error = { code, message: "The \u202Eshelf\u001b[2J broke.", data: { path: "DATA" } };
      const made = fromRpcError(error, { method: "tools/call", server, secrets });
      expect(made.cause).toBe(error);
      expect(made.details).toEqual({ rpcCode: code, said: "The shelf broke." });
      expect(made.message).not.toContain("shelf");
      expect(JSON.stringify(made)).not.toContain("DATA");
    }
  });

  it("X-11 passes on 1,000 characters of them, and not one more", () => {
    const saidOf = (message: string) =>
      fromRpcError({ code: -32602, message }, { method: "tools/call", server, secrets }).details;
    expect(saidOf("x".repeat(1_000))).toEqual({ rpcCode: -32602, said: "x".repeat(1_000) });
    expect(saidOf("x".repeat(1_001))).toEqual({ rpcCode: -32602, said: `${"x".repeat(999)}…` });
    expect(saidOf("\u0007 ")).toEqual({ rpcCode: -32602 });
  });

  it("X-11 passes nothing on where that is turned off", () => {
    const silent = new SourceSecrets(undefined, { said: false });
    const made = fromRpcError({ code: 1, message: "m" }, { method: "tools/call", server, secrets: silent });
    expect(made.details).toEqual({ rpcCode: 1 });
  });

  it("RE-23 names the tool, cleaned and cut", () => {
    const told = (code: number, name: unknown, message = "m") =>
      fromRpcError({ code, message }, { method: "tools/call", params: { name }, server, secrets }).message;
    expect(told(-32602, "get_x", "Unknown tool: get_x")).toBe('MCP server x does not know the tool "get_x".');
    expect(told(-32601, "get_x")).toBe('MCP server x does not know the tool "get_x".');
    expect(told(-32602, "get_x", "q is missing.")).toBe(
      'MCP server x does not take this input for the tool "get_x".',
    );
    expect(told(-32602, "get_x", "")).toBe('MCP server x does not take this input for the tool "get_x".');
    expect(told(-32000, "g\u202e")).toBe(
      'MCP server x answered a call of the tool "g" with an error (-32000).',
    );
    expect(told(-32602, "n".repeat(10_000)).length).toBeLessThan(300);
    expect(told(-32602, 7)).toBe("MCP server x answered tools/call with an error (-32602).");
  });

  it("RE-23 makes a CallError of anything that stands where an error should", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        const made = fromRpcError(readError(value), {
          method: "tools/call",
          params: { name: "a" },
          server,
          secrets,
        });
        expect(JSON.parse(JSON.stringify(made))).toHaveProperty("code");
      }),
    );
  });
});

describe("an unknown tool", () => {
  it.each([
    "Unknown tool: get_x",
    "Unknown tool 'get_x'",
    "unknown tool get_x",
    "Tool get_x not found",
    'MCP error -32602: Tool "get_x" not found',
    "Tool not found: get_x",
    "No such tool: get_x",
    "tool `get_x` does not exist",
    "get_x not found",
  ])("RE-23 is recognised in %j", (message) => {
    expect(isUnknownTool({ code: -32602, message }, "get_x")).toBe(true);
  });

  it.each([
    "Tool get_x: file not found",
    "Invalid arguments for tool get_x: name not found",
    "Unknown tool: get_y",
    "Unknown tool",
    "not found",
    "argument get_x not found",
    "Tool get_x notfoundation",
    "",
  ])("RE-23 is not read into %j", (message) => {
    expect(isUnknownTool({ code: -32602, message }, "get_x")).toBe(false);
  });

  it("RE-23 is recognised by its name in the data beside such words", () => {
    const data = { tool: "get_x" };
    expect(isUnknownTool({ code: -32602, message: "Unknown tool", data }, "get_x")).toBe(true);
    expect(isUnknownTool({ code: -32602, message: "Bad input", data }, "get_x")).toBe(false);
    expect(isUnknownTool({ code: -32602, message: "Unknown tool: ", data: undefined }, "")).toBe(false);
  });
});

describe("HTTP statuses", () => {
  it("RE-23 have a code each, whatever they are", () => {
    expect([301, 308, 502, 599].map(codeOfHttpStatus)).toEqual(Array(4).fill("UNAVAILABLE"));
    expect([400, 406, 418].map(codeOfHttpStatus)).toEqual(Array(3).fill("EXECUTION_ERROR"));
    expect([401, 402, 403, 408, 413, 429].map(codeOfHttpStatus)).toEqual([
      "UNAUTHENTICATED",
      "UPGRADE_REQUIRED",
      "ACCESS_DENIED",
      "TIMEOUT",
      "TOO_LARGE",
      "RATE_LIMITED",
    ]);
  });
});
