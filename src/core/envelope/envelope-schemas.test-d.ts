import type { Static } from "typebox";
import { describe, expectTypeOf, it } from "vitest";
import type { MCPContentBlock } from "./content-block.ts";
import type {
  HTTPResponseMeta,
  LocalResponseMeta,
  MCPResponseMeta,
  ResponseEnvelope,
  ResponseMeta,
} from "./envelope.ts";
import type {
  HTTPResponseMetaSchema,
  LocalResponseMetaSchema,
  MCPContentBlockSchema,
  MCPResponseMetaSchema,
  ResponseEnvelopeSchema,
  ResponseMetaSchema,
} from "./envelope-schemas.ts";

describe("envelope schemas, by type", () => {
  it("RE-9 what a schema accepts is what the interface says", () => {
    expectTypeOf<Static<typeof LocalResponseMetaSchema>>().toExtend<LocalResponseMeta>();
    expectTypeOf<Static<typeof HTTPResponseMetaSchema>>().toExtend<HTTPResponseMeta>();
    expectTypeOf<Static<typeof MCPResponseMetaSchema>>().toExtend<MCPResponseMeta>();
    expectTypeOf<Static<typeof MCPContentBlockSchema>>().toExtend<MCPContentBlock>();
    expectTypeOf<Static<typeof ResponseMetaSchema>>().toExtend<ResponseMeta>();
    expectTypeOf<Static<typeof ResponseEnvelopeSchema>>().toExtend<ResponseEnvelope>();
  });

  it("RE-9 the schemas name every field of the interfaces", () => {
    expectTypeOf<keyof Static<typeof LocalResponseMetaSchema>>().toEqualTypeOf<keyof LocalResponseMeta>();
    expectTypeOf<keyof Static<typeof HTTPResponseMetaSchema>>().toEqualTypeOf<keyof HTTPResponseMeta>();
    expectTypeOf<keyof Static<typeof MCPResponseMetaSchema>>().toEqualTypeOf<keyof MCPResponseMeta>();
    type Facts<T extends { waybill?: unknown }> = keyof NonNullable<T["waybill"]>;
    expectTypeOf<Facts<Static<typeof LocalResponseMetaSchema>>>().toEqualTypeOf<Facts<LocalResponseMeta>>();
  });

  it("RE-9 the sources and the outcome stay literal", () => {
    expectTypeOf<Static<typeof LocalResponseMetaSchema>["source"]>().toEqualTypeOf<"local">();
    expectTypeOf<Static<typeof HTTPResponseMetaSchema>["isError"]>().toEqualTypeOf<true | undefined>();
  });
});
