import { toWire, WIRE_LIMITS } from "../../core/wire/wire.ts";

/** The one call that a token is for. */
export interface BoundCall {
  readonly requestId: string;
  readonly input?: unknown;
  /** Which try it is, where it is not the first. */
  readonly attempt?: number | undefined;
}

/** What a token says about its call, as claims. */
export interface CallClaims {
  /** The id of the operation. */
  readonly op: string;
  /** The request id. */
  readonly jti: string;
  /** The try, from 2 on. */
  readonly att?: number;
  /** The digest of the input. */
  readonly inp: string;
}

/** As deep as an input crosses a wire. */
const MAX_DEPTH = WIRE_LIMITS.depth + 6;

/** Writes what binds a token to one call; rejects with a `CallError` for an input that cannot cross a wire. */
export async function bindCall(operationId: string, call: BoundCall): Promise<CallClaims> {
  const { requestId, input, attempt = 1 } = call;
  return {
    op: operationId,
    jti: requestId,
    ...(attempt > 1 && { att: attempt }),
    inp: await digestOf(input),
  };
}

/** Tells whether claims say which call they are for. */
export function isBound(claims: Readonly<Record<string, unknown>>): boolean {
  return ["op", "jti", "att", "inp"].some((name) => claims[name] !== undefined);
}

/** Tells whether claims are for this call and no other. */
export async function isBoundTo(
  claims: Readonly<Record<string, unknown>>,
  operationId: string,
  call: BoundCall,
): Promise<boolean> {
  const { requestId, attempt = 1 } = call;
  const { op, jti, att = 1, inp } = claims;
  // The input last: it may be large.
  return op === operationId && jti === requestId && att === attempt && inp === (await digestOf(call.input));
}

/** Members of an object keep their order on a wire, so that both ends write the same text. */
async function digestOf(input: unknown): Promise<string> {
  const text = JSON.stringify(toWire(input, { maxDepth: MAX_DEPTH, code: "VALIDATION_ERROR" }));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return btoa(String.fromCharCode(...digest))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
