import type { MCPContentBlock } from "../../core/envelope/content-block.ts";
import type { ResponseEnvelope } from "../../core/envelope/response-meta.ts";
import { type Carrier, isEmpty } from "../carrier.ts";
import type { Decoded } from "../codec.ts";
import type { Contract } from "../contract.ts";
import { isJsonOf } from "../contract.ts";
import { applyResidual } from "../residual.ts";
import { readEnvelope } from "./response-envelope-codec.ts";

/** Reads a tool result that carries a response envelope; what the carrier itself says is kept beside it. */
export function readCarriedEnvelope(
  carrier: Carrier,
  envelope: ResponseEnvelope,
  obtained: Contract["obtained"],
): Decoded {
  const { result: inner, odd: noticed, residual } = readEnvelope(envelope);
  // One of them at most: what one takes away the other must not put in again.
  const isLeft = residual === undefined || carrier.residual !== undefined;
  const { result, odd } = isLeft ? { result: inner, odd: [] } : applyResidual(inner, residual);
  const isJson = obtained === "contract-json" || isJsonOf(carrier.content[0], envelope);
  const content = (isJson ? carrier.content.slice(1) : carrier.content) as readonly MCPContentBlock[];
  const isShown = result.content === undefined && content.length > 0;
  const carried = {
    ...(!isShown && content.length > 0 && { content }),
    ...(!isEmpty(carrier.rest) && { result: carrier.rest }),
  };
  return {
    result: {
      ...result,
      isError: result.isError || carrier.flag === true,
      ...(isShown && { content }),
      ...(carrier.meta && { _meta: { ...result._meta, ...carrier.meta } }),
      ...(!isEmpty(carried) && { extra: { ...result.extra, mcp: { ...result.extra?.mcp, carried } } }),
    },
    obtained,
    odd: [...noticed, ...odd],
  };
}
