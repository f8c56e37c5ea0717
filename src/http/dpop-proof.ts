import { createHash, createHmac, randomBytes } from "node:crypto";
import { calculateJwkThumbprint, EmbeddedJWK, type JWTPayload, jwtVerify } from "jose";
import { monotonicNow } from "../core/execution/cancellation.ts";
import { parseUrl } from "../core/text/parse-url.ts";
import type { RequestHead } from "./exchange.ts";
import { tokenHash } from "./oauth/dpop-key.ts";
import { isSameSecret } from "./oauth/oauth-store.ts";

/** How proofs of keys that tokens are bound to are checked (DPoP, RFC 9449). */
export interface DpopAuth {
  /** Refuses tokens that are bound to no key. @default false */
  readonly required?: boolean | undefined;
  /** @default ES256, ES384, ES512, EdDSA, Ed25519, PS256, PS384, PS512, RS256, RS384 and RS512 */
  readonly algorithms?: readonly string[] | undefined;
  /** How old a proof may be. @default 60_000 */
  readonly maxAgeMs?: number | undefined;
  /** Takes proofs alone that hold a nonce of this process, which says it in `DPoP-Nonce`. @default false */
  readonly nonce?: boolean | undefined;
}

/** Why a proof is not taken: it is none for this request, it lacks the nonce, or there is no room to remember it. */
export type ProofFault = "invalid" | "nonce" | "full";

/** Checks proofs. */
export interface ProofCheck {
  readonly algorithms: readonly string[];
  /** Tells what is wrong with the proof of a request for a token that is bound to a key; nothing where it is right. */
  check(request: RequestHead, token: string, thumbprint: string): Promise<ProofFault | undefined>;
  /** The nonce to use from now on; nothing where none is asked for. */
  nonce(): string | undefined;
}

const ALGORITHMS = [
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
  ...["PS256", "PS384", "PS512", "RS256", "RS384", "RS512"],
];
/** One proof: several in one request come joined by a comma, and are none. */
const PROOF = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const PROOF_CHARACTERS = 8_192;
const JTI_CHARACTERS = 256;
const HOUR_MS = 3_600_000;
/** How long a nonce is the one that is told; it is taken for as long again. */
const NONCE_MS = 120_000;

/** What is compared of proofs with a request and a clock. */
interface ProofRules {
  readonly clockToleranceMs: number;
  /** The address that clients know this server by, where a proxy or another name stands before it. */
  readonly publicUrl: string | undefined;
  /** Proofs that are remembered. @default PROOF_LIMITS */
  readonly limits?: { readonly all: number; readonly ofKey: number };
}

/** Creates what checks proofs; options that make no sense are a `TypeError`. */
export function createProofCheck(options: DpopAuth, rules: ProofRules): ProofCheck {
  const { algorithms = ALGORITHMS, maxAgeMs = 60_000, nonce: isNonced = false } = options;
  const isKnown = Array.isArray(algorithms) && algorithms.length > 0;
  if (!isKnown || !algorithms.every((name) => ALGORITHMS.includes(name)))
    throw new TypeError(`dpop.algorithms must be some of: ${ALGORITHMS.join(", ")}.`);
  if (!Number.isFinite(maxAgeMs) || maxAgeMs <= 0 || maxAgeMs > HOUR_MS)
    throw new TypeError("dpop.maxAgeMs must be a number of milliseconds, no more than an hour.");
  const { clockToleranceMs, publicUrl, limits = PROOF_LIMITS } = rules;
  const used = new UsedProofs(maxAgeMs + 2 * clockToleranceMs, limits);
  const nonces = isNonced ? new Nonces() : undefined;
  const read = async (text: string): Promise<{ payload: JWTPayload; thumbprint: string } | undefined> => {
    try {
      const { payload, protectedHeader } = await jwtVerify(text, EmbeddedJWK, {
        algorithms: [...algorithms],
        typ: "dpop+jwt",
        clockTolerance: clockToleranceMs / 1_000,
      });
      return { payload, thumbprint: await calculateJwkThumbprint(protectedHeader.jwk ?? {}, "sha256") };
    } catch {
      return undefined;
    }
  };
  return {
    algorithms,
    nonce: () => nonces?.current(),
    async check(request, token, bound) {
      const text = request.header("dpop");
      if (text === undefined || text.length > PROOF_CHARACTERS || !PROOF.test(text)) return "invalid";
      const proof = await read(text);
      if (proof === undefined || !isSameSecret(proof.thumbprint, bound)) return "invalid";
      const { htm, htu, ath, jti, iat, nonce } = proof.payload;
      if (htm !== request.method || !isHere(htu, request, publicUrl)) return "invalid";
      if (typeof ath !== "string" || !isSameSecret(ath, tokenHash(token))) return "invalid";
      if (typeof jti !== "string" || jti === "" || jti.length > JTI_CHARACTERS) return "invalid";
      const ageMs = Date.now() - Number(iat) * 1_000;
      // An `iat` counts whole seconds.
      const isTimely = ageMs >= -clockToleranceMs - 1_000 && ageMs <= maxAgeMs + clockToleranceMs;
      if (typeof iat !== "number" || !isTimely) return "invalid";
      if (nonces !== undefined && !nonces.isTaken(nonce)) return "nonce";
      return used.take(bound, jti);
    },
  };
}

/** Compares what a proof is for with the address of a request, without its query; of scheme and host where those are known for certain. */
function isHere(htu: unknown, { origin, path }: RequestHead, publicUrl: string | undefined): boolean {
  const named = typeof htu === "string" && htu.length <= PROOF_CHARACTERS ? parseUrl(htu) : undefined;
  if (named === undefined || named.search !== "" || named.hash !== "" || named.username !== "") return false;
  const own = parseUrl(publicUrl === undefined ? origin + path : publicUrl.replace(/\/+$/, "") + path);
  if (own === undefined || named.pathname !== own.pathname) return false;
  // What ends TLS before this server leaves the host, and not the scheme.
  return publicUrl === undefined
    ? named.hostname === own.hostname && isWeb(named)
    : named.origin === own.origin;
}

function isWeb({ protocol }: URL): boolean {
  return protocol === "https:" || protocol === "http:";
}

/** Proofs that are remembered, and those of one key: so many come in before the first of them is too old. */
export const PROOF_LIMITS = { all: 200_000, ofKey: 50_000 } as const;

/** Remembers which proofs were used, until they are too old to be used again. */
class UsedProofs {
  readonly #keepMs: number;
  /** When each may be forgotten, the oldest first. */
  readonly #until = new Map<string, { readonly at: number; readonly key: string }>();
  readonly #ofKey = new Map<string, number>();

  readonly #limits: { readonly all: number; readonly ofKey: number };

  constructor(keepMs: number, limits: { readonly all: number; readonly ofKey: number }) {
    this.#keepMs = keepMs;
    this.#limits = limits;
  }

  /** Remembers a proof; tells where it was used before, or where there is no room. */
  take(key: string, jti: string): ProofFault | undefined {
    const now = monotonicNow();
    this.#forget(now);
    const name = createHash("sha256").update(key).update(jti).digest("base64");
    if (this.#until.has(name)) return "invalid";
    const count = this.#ofKey.get(key) ?? 0;
    if (this.#until.size >= this.#limits.all || count >= this.#limits.ofKey) return "full";
    this.#until.set(name, { at: now + this.#keepMs, key });
    this.#ofKey.set(key, count + 1);
    return undefined;
  }

  #forget(now: number): void {
    for (const [name, { at, key }] of this.#until) {
      if (at > now) return;
      this.#until.delete(name);
      const left = (this.#ofKey.get(key) ?? 1) - 1;
      if (left > 0) this.#ofKey.set(key, left);
      else this.#ofKey.delete(key);
    }
  }
}

/** Nonces that nothing has to be remembered of: each is a time, signed by this process. */
class Nonces {
  readonly #secret = randomBytes(32);

  current(): string {
    return this.#of(this.#period());
  }

  isTaken(nonce: unknown): boolean {
    if (typeof nonce !== "string") return false;
    const period = this.#period();
    return isSameSecret(nonce, this.#of(period)) || isSameSecret(nonce, this.#of(period - 1));
  }

  #period(): number {
    return Math.floor(monotonicNow() / NONCE_MS);
  }

  #of(period: number): string {
    return createHmac("sha256", this.#secret).update(String(period)).digest("base64url");
  }
}
