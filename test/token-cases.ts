import { createHmac, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { SignJWT } from "jose";
import { afterEach, beforeEach, vi } from "vitest";
import {
  createTokenVerifier,
  type Delivery,
  type TokenVerifier,
  type TokenVerifierOptions,
} from "../src/call/index.ts";
import { rejection } from "./make-operation.ts";

/** The secret of the tests. */
export const KEY: Uint8Array = randomBytes(32);

/** The RSA pair of the tests. */
export const RSA = generateKeyPairSync("rsa", { modulusLength: 2_048 });

/** The Ed25519 pair of the tests. */
export const ED = generateKeyPairSync("ed25519");

/** When the tests take place, in Unix epoch milliseconds. */
export const START: number = Date.UTC(2030, 0, 1);

/** The payload of a token that lives for a minute from the start. */
export const GOOD = {
  ...{ sub: "ada", iss: "desk", aud: "waybill:note" },
  ...{ iat: START / 1_000, exp: START / 1_000 + 60 },
};

/** How every bad token is refused. */
export const REFUSED = { code: "UNAUTHENTICATED", message: "The credential of the call is not valid." };

/** A request with a token, in which everything else says that root is asking. */
export const delivery = (credential?: string, operationId = "note.read"): Delivery => ({
  request: { type: "call.requested", requestId: "1", operationId, credential },
  identity: { subject: "root" },
  user: "root",
});

/** A verifier of the secret, or of what a test is about; which call a token is for is looked at in `bound-call.test.ts`. */
export const verifier = (options: Partial<TokenVerifierOptions> = {}): TokenVerifier =>
  createTokenVerifier({ keys: KEY, issuer: "desk", acceptUnbound: true, ...options });

/** A token with any payload. */
export const sign = (
  claims: object,
  alg = "HS256",
  key: KeyObject | Uint8Array = KEY,
  header: object = {},
): Promise<string> => new SignJWT({ ...claims }).setProtectedHeader({ alg, ...header }).sign(key);

/** One part of a token. */
export function part(value: object | string): string {
  return Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
}

/** A token put together by hand, with any header and payload, rightly signed with a secret. */
export function forge(
  header: object | string,
  payload: object | string,
  secret: Uint8Array | string = KEY,
): string {
  const text = `${part(header)}.${part(payload)}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

/** What a verifier refuses a token with. */
export const refusal = (token: string, options: Partial<TokenVerifierOptions> = {}): Promise<unknown> =>
  rejection(verifier(options)(delivery(token)));

/** Lets every test of a file take place at `START`. */
export function useStartDate(): void {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: START });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}
