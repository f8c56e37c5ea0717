import { basename } from "node:path";
import { describe, expect, it } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import { scriptedOptions } from "../../../test/mcp-servers/scripted-connection.ts";
import { type McpSourceOptions, openMcpSource } from "./from-mcp.ts";

async function failure(options: unknown): Promise<Error & { code: string }> {
  return (await rejection(
    openMcpSource({ namespace: "files", ...(options as object) } as McpSourceOptions),
  )) as never;
}

describe("a first connection that fails", () => {
  it("Mcp: says how the process ended and what it last said", async () => {
    const script = 'throw new Error("\\u001b[31mAPI_KEY is required")';
    const { code, message } = await failure({ command: process.execPath, args: ["-e", script] });
    expect(code).toBe("UNAVAILABLE");
    expect(message).toBe(
      `MCP server "files" (${basename(process.execPath)}) could not be connected to: its process exited with code 1; it last said: Error: API_KEY is required.`,
    );
  });

  it("Mcp: says that an older server does not speak 2026-07-28", async () => {
    const { message } = await failure({ ...scriptedOptions("legacy").options, protocol: "2026" });
    expect(message).toContain('it does not speak 2026-07-28; leave protocol out, or set it to "2025".');
  });
});
