import type {
  ReadResourceResult as SdkResource,
  CallToolResult as SdkResult,
} from "@modelcontextprotocol/sdk/types.js";
import type {
  ReadResourceResult as ServerResource,
  CallToolResult as ServerResult,
} from "@modelcontextprotocol/server";
import { describe, expectTypeOf, it } from "vitest";
import type { CallToolResult, ReadResourceResult, ToolPayload } from "./index.ts";

describe("what a handler returns", () => {
  it("TR-2 TE-3 fits the results of both generations of the MCP SDK", () => {
    expectTypeOf<CallToolResult>().toExtend<SdkResult>();
    expectTypeOf<CallToolResult>().toExtend<ServerResult>();
    expectTypeOf<ToolPayload<{ hits: number }>>().toExtend<SdkResult>();
    expectTypeOf<ToolPayload<{ hits: number }>>().toExtend<ServerResult>();
  });

  it("TR-6 fits what both read resources with", () => {
    expectTypeOf<ReadResourceResult>().toExtend<SdkResource>();
    expectTypeOf<ReadResourceResult>().toExtend<ServerResource>();
  });
});
