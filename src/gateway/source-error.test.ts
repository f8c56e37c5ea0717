import { describe, expect, it } from "vitest";
import { CallError } from "../core/errors/errors.ts";
import { forCallers, sourceError } from "./missing-operation.ts";

describe("forCallers", () => {
  it("tells the cause in our words, and nothing of what a process wrote", () => {
    const state = {
      status: "down",
      since: 0,
      reason: "it last said: /etc/x",
      cause: "it cannot be used.",
    } as const;
    const error = sourceError({ name: "files", state }, "is down", "");
    expect(error.message).toContain("/etc/x");
    expect(forCallers(error)).toMatchObject({
      code: "UNAVAILABLE",
      message: 'The source "files" is down: it cannot be used.',
    });
  });

  it("leaves out where a server is, and details that are for this process alone", () => {
    const error = new CallError(
      "EXECUTION_ERROR",
      'MCP server "files" (/opt/secret/prog) answered with an error.',
      {
        details: { rpcCode: -1, said: "foreign" },
        local: ["said"],
        correctable: true,
      },
    );
    expect(forCallers(error)).toMatchObject({
      message: 'MCP server "files" answered with an error.',
      details: { rpcCode: -1 },
      correctable: true,
    });
    expect(JSON.stringify(forCallers(error))).not.toContain("foreign");
  });

  it("leaves everything else as it is", () => {
    const error = new CallError("NOT_FOUND", "There is none.");
    expect(forCallers(error)).toBe(error);
    expect(forCallers("text")).toBe("text");
  });
});
