import { generateKeyPair, SignJWT } from "jose";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createProofCheck, type DpopAuth, PROOF_LIMITS } from "./dpop-proof.ts";
import type { RequestHead } from "./exchange.ts";
import { createDpopKey, type DpopKey, tokenHash } from "./oauth/dpop-key.ts";

const TOKEN = "the-access-token";
const URL_OF = "http://127.0.0.1:4100/mcp";
const rules = { clockToleranceMs: 5_000, publicUrl: undefined };

afterEach(() => {
  vi.useRealTimers();
});

const head = (proof: string | undefined, more: Partial<RequestHead> = {}): RequestHead => ({
  method: "POST",
  origin: "http://127.0.0.1:4100",
  path: "/mcp",
  header: (name) => (name === "dpop" ? proof : undefined),
  ...more,
});

const prove = (
  key: DpopKey,
  more: { readonly method?: string; readonly url?: string; readonly token?: string } = {},
) => key.prove({ method: "POST", url: URL_OF, token: TOKEN, ...more });

/** A proof that says what it likes, signed with a key of its own. */
async function forge(change: { readonly header?: object; readonly claims?: object }, key?: DpopKey) {
  const made = key ?? (await createDpopKey());
  const { d: _, ...jwk } = made.jwk;
  const { importJWK } = await import("jose");
  const claims = {
    jti: crypto.randomUUID(),
    htm: "POST",
    htu: URL_OF,
    ath: tokenHash(TOKEN),
    iat: Math.floor(Date.now() / 1_000),
    ...change.claims,
  };
  const header = { alg: "ES256", typ: "dpop+jwt", jwk, ...change.header };
  return await new SignJWT(claims).setProtectedHeader(header).sign(await importJWK(made.jwk, "ES256"));
}

const check = (options: DpopAuth = {}, more: object = {}) => createProofCheck(options, { ...rules, ...more });

describe("a proof", () => {
  it("is taken for its method, address, token and key, once", async () => {
    const key = await createDpopKey();
    const proofs = check();
    const proof = await prove(key);
    expect(await proofs.check(head(proof), TOKEN, key.thumbprint)).toBeUndefined();
    expect(await proofs.check(head(proof), TOKEN, key.thumbprint)).toBe("invalid");
    expect(await proofs.check(head(await prove(key)), TOKEN, key.thumbprint)).toBeUndefined();
  });

  it("is taken for nothing else", async () => {
    const key = await createDpopKey();
    const other = await createDpopKey();
    const proofs = check();
    const good = await prove(key);
    const now = Math.floor(Date.now() / 1_000);
    const bad: Record<string, [RequestHead, string?, string?]> = {
      "no proof": [head(undefined)],
      "two proofs": [head(`${good}, ${await prove(key)}`)],
      garbage: [head("a.b.c")],
      "too long a proof": [head(`${"a".repeat(8_192)}.b.c`)],
      "another method": [head(await prove(key, { method: "GET" }))],
      "another path": [head(await prove(key, { url: "http://127.0.0.1:4100/other" }))],
      "another host": [head(await prove(key, { url: "http://evil.example/mcp" }))],
      "another token": [head(await prove(key)), "another-token"],
      "another key": [head(await prove(other))],
      "a key of another token": [head(await prove(key)), TOKEN, other.thumbprint],
      "no token": [head(await key.prove({ method: "POST", url: URL_OF }))],
      "an address with a query": [head(await forge({ claims: { htu: `${URL_OF}?a=b` } }, key))],
      "no address": [head(await forge({ claims: { htu: 5 } }, key))],
      "no id": [head(await forge({ claims: { jti: undefined } }, key))],
      "too long an id": [head(await forge({ claims: { jti: "j".repeat(257) } }, key))],
      "another type": [head(await forge({ header: { typ: "JWT" } }, key))],
      "no time": [head(await forge({ claims: { iat: undefined } }, key))],
      "too old": [head(await forge({ claims: { iat: now - 70 } }, key))],
      "not made yet": [head(await forge({ claims: { iat: now + 10 } }, key))],
      "a private key in it": [head(await forge({ header: { jwk: key.jwk } }, key))],
      "a key that did not sign it": [
        head(await forge({ header: { jwk: { ...other.jwk, d: undefined } } }, key)),
      ],
    };
    for (const [name, [request, token = TOKEN, bound = key.thumbprint]] of Object.entries(bad)) {
      expect([name, await proofs.check(request, token, bound)]).toEqual([name, "invalid"]);
    }
    // Nothing of all that has used up the good one.
    expect(await proofs.check(head(good), TOKEN, key.thumbprint)).toBeUndefined();
  });

  it("is signed with an algorithm that is allowed", async () => {
    const key = await createDpopKey();
    const proofs = check({ algorithms: ["RS256"] });
    expect(await proofs.check(head(await prove(key)), TOKEN, key.thumbprint)).toBe("invalid");
    const secret = await generateKeyPair("ES256");
    expect(secret.publicKey.type).toBe("public");
    for (const algorithms of [["HS256"], ["none"], []]) {
      expect(() => check({ algorithms })).toThrow(TypeError);
    }
    for (const maxAgeMs of [0, -1, Number.NaN, 3_600_001])
      expect(() => check({ maxAgeMs })).toThrow(TypeError);
  });

  it.each([
    ["https://gw.example", "https://gw.example/mcp", undefined],
    ["https://gw.example/below/", "https://gw.example/below/mcp", undefined],
    ["https://gw.example", "http://gw.example/mcp", "invalid"],
    ["https://gw.example", "https://gw.example:8443/mcp", "invalid"],
    ["https://gw.example", "http://127.0.0.1:4100/mcp", "invalid"],
    [undefined, "https://127.0.0.1/mcp", undefined],
  ])("is for the address that clients know: %s takes %s: %s", async (publicUrl, url, fault) => {
    const key = await createDpopKey();
    const proofs = check({}, { publicUrl });
    expect(await proofs.check(head(await prove(key, { url })), TOKEN, key.thumbprint)).toBe(fault);
  });

  it("holds the nonce of this process where that is asked for, and for so long", async () => {
    vi.useFakeTimers({ toFake: ["performance", "Date"] });
    const key = await createDpopKey();
    const proofs = check({ nonce: true });
    const send = async () => await proofs.check(head(await prove(key)), TOKEN, key.thumbprint);
    const tell = (nonce = proofs.nonce() ?? "") =>
      key.noteNonce(URL_OF, new Response(null, { headers: { "dpop-nonce": nonce } }));
    expect(await send()).toBe("nonce");
    tell("made-up");
    expect(await send()).toBe("nonce");
    tell();
    expect(await send()).toBeUndefined();
    vi.advanceTimersByTime(119_999);
    expect(await send()).toBeUndefined();
    vi.advanceTimersByTime(120_001);
    expect(await send()).toBe("nonce");
    tell(check({ nonce: true }).nonce());
    expect(await send()).toBe("nonce");
  });

  it("is remembered until it is too old, up to so many of one key, and none is forgotten before", async () => {
    vi.useFakeTimers({ toFake: ["performance", "Date"] });
    const key = await createDpopKey();
    const proofs = check({ maxAgeMs: 1_000 }, { clockToleranceMs: 0 });
    const first = await prove(key);
    expect(await proofs.check(head(first), TOKEN, key.thumbprint)).toBeUndefined();
    vi.advanceTimersByTime(2_001);
    expect(await proofs.check(head(first), TOKEN, key.thumbprint)).toBe("invalid");
  });

  it("is refused where there is no room to remember it, of its key or at all, until some are too old", async () => {
    vi.useFakeTimers({ toFake: ["performance", "Date"] });
    expect(PROOF_LIMITS).toEqual({ all: 200_000, ofKey: 50_000 });
    const limits = { all: 3, ofKey: 2 };
    const proofs = check({ maxAgeMs: 1_000 }, { clockToleranceMs: 0, limits });
    const [ann, bob, eve] = await Promise.all([createDpopKey(), createDpopKey(), createDpopKey()]);
    const send = async (key: DpopKey) => await proofs.check(head(await prove(key)), TOKEN, key.thumbprint);
    expect([await send(ann), await send(ann), await send(ann)]).toEqual([undefined, undefined, "full"]);
    expect([await send(bob), await send(eve)]).toEqual([undefined, "full"]);
    vi.advanceTimersByTime(1_001);
    expect([await send(eve), await send(ann), await send(ann)]).toEqual([undefined, undefined, undefined]);
  });
});
