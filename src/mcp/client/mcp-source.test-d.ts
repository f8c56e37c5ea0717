import { expectTypeOf, it } from "vitest";
import type { MCPResponseMeta, ResponseEnvelope } from "../../core/envelope/envelope.ts";
import type { McpTarget } from "./connection-options.ts";
import type { McpSource } from "./mcp-source.ts";

it("RE-23 the envelope of a tool has the meta of MCP, and is still an envelope", () => {
  type Answer = Awaited<ReturnType<McpSource["call"]>>;
  expectTypeOf<Answer>().toExtend<ResponseEnvelope>();
  expectTypeOf<Answer["meta"]["content"]>().toEqualTypeOf<MCPResponseMeta["content"]>();
  expectTypeOf<Answer["meta"]["source"]>().toEqualTypeOf<"mcp">();
});

it("Mcp: a url is a text or a URL", () => {
  type Url = Extract<McpTarget, { readonly url: unknown }>["url"];
  expectTypeOf<Url>().toEqualTypeOf<string | URL>();
});
