import { ProtocolError, RPC_CODES } from "../protocol/messages.ts";
import {
  decodeHeader,
  isInexact,
  type MirroredParam,
  mirroredParams,
  mirroredValue,
} from "../protocol/mirrored-params.ts";
import type { PeerRequest } from "./peer-request.ts";

const DECIMAL = /^-?\d{1,20}(\.\d{1,20})?$/;

/**
 * Checks that the `Mcp-Param-*` headers of a 2026-07-28 call over HTTP repeat what the arguments say, wherever the tool's input
 * schema has an `x-mcp-header`: what routed the request must be what runs. Anything else is a protocol error.
 */
export function checkParamHeaders(
  request: Pick<PeerRequest, "peer" | "hasHeaders" | "header">,
  inputSchema: object,
  args: unknown,
): void {
  if (!request.hasHeaders || request.peer.era !== "modern") return;
  const wrong = mirroredParams(inputSchema).find((each) => !agrees(each, args, request));
  if (wrong === undefined) return;
  const message = `The header ${wrong.header} does not repeat the argument ${wrong.path.join(".")}.`;
  throw new ProtocolError(RPC_CODES.headerMismatch, message, { mismatch: { header: wrong.header } });
}

/** A header is only needed for a value that can be written in one; without such a value, there is nothing it could repeat. */
function agrees(
  { path, header }: MirroredParam,
  args: unknown,
  request: Pick<PeerRequest, "header">,
): boolean {
  const value = mirroredValue(args, path);
  const given = request.header(header.toLowerCase());
  if (value === undefined) return given === undefined;
  if (isInexact(value)) return true;
  const text = given === undefined ? undefined : decodeHeader(given);
  if (text === undefined) return false;
  if (typeof value === "number" && DECIMAL.test(text)) return Number(text) === value;
  return text === String(value);
}
