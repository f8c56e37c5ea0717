import { describe, expect, it } from "vitest";
import { ownerOf } from "../core/access/identity.ts";
import { callerDigest } from "./caller.ts";

const ann = { subject: "ann", scopes: ["a", "b"], tier: "pro", resources: { x: ["1"], y: "*" as const } };

describe("the digest of a caller", () => {
  it("RE-29 is the same however rights are ordered, and whichever token they came with", () => {
    const reordered = { ...ann, scopes: ["b", "a", "b"], resources: { y: "*" as const, x: ["1"] } };
    expect(callerDigest(reordered)).toBe(callerDigest(ann));
    const token = (jti: string) => ({ ...ann, claims: { iss: "i", org: { id: 1n }, jti, sid: jti } });
    expect(callerDigest(token("1"))).toBe(callerDigest(token("2")));
  });

  it.each([
    [{ ...ann, subject: "bob" }],
    [{ ...ann, scopes: ["a"] }],
    [{ ...ann, tier: "free" }],
    [{ subject: "ann", scopes: ["a", "b"], resources: ann.resources }],
    [{ ...ann, resources: { x: ["1", "2"], y: "*" as const } }],
    [{ ...ann, claims: { org: 1 } }],
    [undefined],
  ])("RE-29 is another for other rights: %o", (other) => {
    expect(callerDigest(other)).not.toBe(callerDigest(ann));
  });

  it("RE-29 takes nobody for the same whose claims cannot be compared", () => {
    const odd = { ...ann, claims: { pattern: /x/ } };
    expect(callerDigest(odd)).not.toBe(callerDigest(odd));
  });

  it("RE-29 names a caller by subject and issuer, whatever the rights", () => {
    const of = (iss: string) => ({ ...ann, claims: { iss } });
    expect(ownerOf(of("a"))).toBe(ownerOf({ ...of("a"), scopes: [] }));
    expect(new Set([of("a"), of("b"), ann, undefined, { subject: "" }].map(ownerOf)).size).toBe(5);
  });
});
