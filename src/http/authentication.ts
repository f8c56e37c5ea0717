import { HeldIdentity, type Identity } from "../core/access/identity.ts";
import { errorTraits } from "../core/errors/error-codes.ts";
import { isCallError } from "../core/errors/errors.ts";
import { type BearerAuth, createBearerCheck, type Described } from "./bearer.ts";
import type { HttpRequest } from "./exchange.ts";
import type { Refusal } from "./refusal.ts";

/** How callers over HTTP are told from one another; with neither, all are anonymous. */
export interface HttpAuthenticationOptions {
  /** Every request needs a bearer token. */
  readonly auth?: BearerAuth | undefined;
  /** A scheme of one's own: who is asking, nothing or `null` for an anonymous caller; a thrown `CallError` refuses the request. */
  readonly authenticate?:
    | ((request: Request) => Identity | null | undefined | Promise<Identity | null | undefined>)
    | undefined;
}

/** Tells who is asking. */
export interface HttpAuthentication {
  /** Whether a caller without an identity is known to be nobody, rather than not known. */
  readonly decides: boolean;
  identify(
    request: HttpRequest,
  ): Promise<{ readonly identity: Identity | undefined } | { readonly refusal: Refusal }>;
  /** Answers a request for what clients need to know to get a token; nothing where it is for something else. */
  describe(request: HttpRequest): Described | undefined;
}

/** Creates what authenticates requests; both ways at once are a `TypeError`. */
export function createAuthentication(options: HttpAuthenticationOptions): HttpAuthentication {
  const { auth, authenticate } = options;
  if (auth !== undefined && authenticate !== undefined) {
    throw new TypeError("Give auth or authenticate, not both: it would not be clear which one decides.");
  }
  if (auth !== undefined) {
    const bearer = createBearerCheck(auth);
    return {
      decides: true,
      identify: (request) => bearer.check(request),
      describe: (request) => bearer.describe(request),
    };
  }
  const describe = (): undefined => undefined;
  if (authenticate === undefined) {
    return { decides: false, identify: async () => ({ identity: undefined }), describe };
  }
  return {
    decides: true,
    describe,
    async identify(request) {
      try {
        const identity = await authenticate(request.toRequest());
        return {
          identity: identity === undefined || identity === null ? undefined : HeldIdentity.of(identity),
        };
      } catch (thrown) {
        if (!isCallError(thrown)) throw thrown;
        const { httpStatus } = errorTraits(thrown.code);
        const headers: Record<string, string> = httpStatus === 401 ? { "www-authenticate": "Bearer" } : {};
        return { refusal: { status: httpStatus, message: thrown.message, headers } };
      }
    },
  };
}
