import { createLocalJWKSet, exportJWK } from "jose";
import { describe, expect, it } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import {
  delivery,
  ED,
  forge,
  GOOD,
  KEY,
  REFUSED,
  refusal,
  sign,
  useStartDate,
  verifier,
} from "../../../test/token-cases.ts";

useStartDate();

describe("several keys", () => {
  const keys = [
    { keyId: "old", key: ED.publicKey },
    { keyId: "new", key: KEY },
  ];

  it("Identity: are told apart by the id in the token, which says nothing about the algorithm", async () => {
    const verify = verifier({ keys });
    const good = [
      await sign(GOOD, "EdDSA", ED.privateKey, { kid: "old" }),
      await sign(GOOD, "HS256", KEY, { kid: "new" }),
    ];
    for (const token of good) expect(await verify(delivery(token))).toBeDefined();
    const bad = [
      await sign(GOOD, "HS256", KEY, { kid: "old" }),
      await sign(GOOD, "EdDSA", ED.privateKey, { kid: "new" }),
      await sign(GOOD, "HS256", KEY),
      await sign(GOOD, "HS256", KEY, { kid: "__proto__" }),
      forge({ alg: "HS256", kid: ["new"] }, GOOD),
    ];
    for (const token of bad) expect(await rejection(verify(delivery(token)))).toMatchObject(REFUSED);
  });

  it("Identity: may come from a function, and one that fails is not the caller's fault", async () => {
    const set = createLocalJWKSet({ keys: [{ ...(await exportJWK(ED.publicKey)), kid: "k1" }] });
    const options = { keys: set, algorithms: ["EdDSA"] } as const;
    const token = await sign(GOOD, "EdDSA", ED.privateKey, { kid: "k1" });
    expect(await verifier(options)(delivery(token))).toBeDefined();
    expect(await refusal(await sign(GOOD, "EdDSA", ED.privateKey, { kid: "k2" }), options)).toMatchObject(
      REFUSED,
    );
    const broken = async () => {
      throw new Error("no route to keys.internal");
    };
    const error = await refusal(token, { ...options, keys: broken });
    expect(error).toMatchObject({ code: "UNAVAILABLE", retryable: true });
    expect(JSON.stringify(error)).not.toContain("keys.internal");
  });
});
