import { assertType, describe, expectTypeOf, it } from "vitest";
import type { MCPContentBlock } from "./content-block.ts";
import {
  type HTTPResponseMeta,
  httpEnvelope,
  isMarkedEnvelope,
  isResponseEnvelope,
  type LocalResponseMeta,
  localEnvelope,
  type MCPResponseMeta,
  mcpEnvelope,
  type ResponseEnvelope,
  type ResponseMeta,
  type ResponseSource,
  type ResultEnvelope,
  result,
  toolError,
  unwrap,
  withFacts,
} from "./envelope.ts";

describe("envelopes, by type", () => {
  it("RE-1 meta is a union told apart by source", () => {
    expectTypeOf<ResponseMeta["source"]>().toEqualTypeOf<"local" | "http" | "mcp">();
    expectTypeOf<ResponseSource>().toEqualTypeOf<ResponseMeta["source"]>();
    expectTypeOf<Extract<ResponseMeta, { source: "local" }>>().toEqualTypeOf<LocalResponseMeta>();
    expectTypeOf<Extract<ResponseMeta, { source: "http" }>>().toEqualTypeOf<HTTPResponseMeta>();
    expectTypeOf<Extract<ResponseMeta, { source: "mcp" }>>().toEqualTypeOf<MCPResponseMeta>();
    expectTypeOf<ResponseEnvelope["data"]>().toBeUnknown();
  });

  it("RE-6 factories keep the type of the data", () => {
    expectTypeOf(localEnvelope({ id: "1" }, "a.b")).toEqualTypeOf<ResponseEnvelope<{ id: string }>>();
    expectTypeOf(localEnvelope(undefined, "a.b")).toEqualTypeOf<ResponseEnvelope<undefined>>();
    expectTypeOf(httpEnvelope("x", { statusCode: 200, headers: {} })).toEqualTypeOf<
      ResponseEnvelope<string>
    >();
    expectTypeOf(mcpEnvelope(1, { isError: false, content: [] })).toEqualTypeOf<ResponseEnvelope<number>>();
    expectTypeOf(toolError({ reason: "no" })).toEqualTypeOf<ResponseEnvelope<{ reason: string }>>();
  });

  it("RE-6 factories take fields that may be undefined, as a remote result has them", () => {
    const result = {} as { _meta?: Record<string, unknown> | undefined; structuredContent?: unknown };
    mcpEnvelope(1, { isError: false, content: [], ...result });
    httpEnvelope(1, { statusCode: 200, headers: {}, contentType: null as string | null });
    // @ts-expect-error the status is required
    httpEnvelope(1, { headers: {} });
    // @ts-expect-error the content is required
    mcpEnvelope(1, { isError: false });
  });

  it("RE-8 unwrap gives the type of the data", () => {
    expectTypeOf(unwrap(localEnvelope({ id: "1" }, "a.b"))).toEqualTypeOf<{ id: string }>();
  });

  it("RE-7 guards narrow to an envelope of unknown data", () => {
    expectTypeOf(isResponseEnvelope).guards.toEqualTypeOf<ResponseEnvelope>();
    expectTypeOf(isMarkedEnvelope).guards.toEqualTypeOf<ResponseEnvelope>();
  });

  it("RE-11 a copy with facts keeps the type, and nothing can be assigned", () => {
    const envelope = withFacts(localEnvelope(1, "a.b"), { durationMs: 1 });
    expectTypeOf(envelope).toEqualTypeOf<ResponseEnvelope<number>>();
    // @ts-expect-error envelopes are read-only
    envelope.data = 2;
    // @ts-expect-error facts are a closed list
    withFacts(envelope, { colour: "red" });
  });

  it("RE-4 code that only reads compiles as the documents write it", () => {
    const { meta } = {} as ResponseEnvelope;
    if (meta.source === "mcp") {
      const blocks: MCPContentBlock[] = meta.content;
      const structured: Record<string, unknown> | undefined = meta.structuredContent;
      const extensions: Record<string, unknown> | undefined = meta._meta;
      const audience: Array<"user" | "assistant"> | undefined = blocks[0]?.annotations?.audience;
      assertType<unknown[]>([blocks, structured, extensions, audience]);
    }
    if (meta.source === "http") assertType<Record<string, string>>(meta.headers);
  });

  it("RE-11 what is said of a result, and the envelope itself, stay read-only", () => {
    const { meta } = {} as ResponseEnvelope;
    // @ts-expect-error members of meta cannot be assigned
    meta.source = "http";
    // @ts-expect-error nor can what was said be added to
    meta.waybill?.said?.nextSteps?.push("Go on.");
    // @ts-expect-error nor what was found wrong
    meta.waybill?.violations?.pop();
  });

  it("X-7 result keeps the type of the data, literals too", () => {
    expectTypeOf(result({ status: "open", tags: ["a"] })).toEqualTypeOf<
      ResultEnvelope<{ status: "open"; tags: ["a"] }>
    >();
    assertType<ResponseEnvelope<{ status: string; tags: string[] }>>(result({ status: "open", tags: ["a"] }));
    expectTypeOf(result({} as { readonly id: string }, { summary: "One" }).data).toEqualTypeOf<{
      readonly id: string;
    }>();
    expectTypeOf(result({} as unknown).data).toBeUnknown();
    expectTypeOf(result<{ n: number }>({ n: 1 }).data).toEqualTypeOf<{ n: number }>();
    const wrap = <T>(data: T) => result(data);
    expectTypeOf(wrap(new Date()).data).toEqualTypeOf<Date>();
    // @ts-expect-error an error is made with toolError
    result(1, { status: "error" });
    // @ts-expect-error what can be said is a closed list
    result(1, { colour: "red" });
  });
});
