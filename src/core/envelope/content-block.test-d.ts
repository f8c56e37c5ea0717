import { describe, expectTypeOf, it } from "vitest";
import type { MCPAnnotations, MCPContentBlock, MCPResourceContent } from "./content-block.ts";

describe("content blocks, by type", () => {
  it("RE-5 there are five, told apart by type", () => {
    expectTypeOf<MCPContentBlock["type"]>().toEqualTypeOf<
      "text" | "image" | "audio" | "resource" | "resource_link"
    >();
  });

  it("RE-5 each has the fields MCP gives it", () => {
    type Block<T extends MCPContentBlock["type"]> = Extract<MCPContentBlock, { type: T }>;
    expectTypeOf<{ type: "text"; text: string }>().toExtend<Block<"text">>();
    expectTypeOf<{ type: "image"; data: string; mimeType: string }>().toExtend<Block<"image">>();
    expectTypeOf<{ type: "audio"; data: string; mimeType: string }>().toExtend<Block<"audio">>();
    expectTypeOf<Block<"resource">["resource"]>().toEqualTypeOf<MCPResourceContent>();
    expectTypeOf<{ type: "resource_link"; uri: string; name: string }>().toExtend<Block<"resource_link">>();
    expectTypeOf<{ type: "image"; data: string }>().not.toExtend<MCPContentBlock>();
    expectTypeOf<MCPContentBlock["annotations"]>().toEqualTypeOf<MCPAnnotations | undefined>();
  });
});
