import type { ServerContext } from "@modelcontextprotocol/server";
import { describe, expect, it } from "vitest";
import { ownerOf } from "../../core/access/identity.ts";
import { identityOf, withIdentity } from "./peer-identity.ts";

const fallback = { subject: "process" };
const contextOf = (authInfo?: object): ServerContext => ({ http: authInfo && { authInfo } }) as ServerContext;
const token = { token: "t", clientId: "c", scopes: ["admin"] };

describe("identityOf", () => {
  it("X-4 gives whom the transport authenticated, by the very object it was told", () => {
    const ann = { subject: "ann" };
    const known = withIdentity({ ...token }, ann);
    expect(identityOf(contextOf(known), fallback)).toBe(ann);
  });

  it("X-4 takes nobody for the process itself who came with a token", () => {
    expect(identityOf(contextOf({ ...token, extra: { subject: "root" } }), fallback)).toBeUndefined();
    expect(identityOf(contextOf(), fallback)).toBe(fallback);
    expect(identityOf(contextOf(), "anonymous")).toBeUndefined();
  });
});

describe("ownerOf", () => {
  it("X-4 tells callers apart by subject and issuer, and by nothing that changes with a new token", () => {
    const ann = { subject: "ann", claims: { iss: "one" } };
    expect(ownerOf({ ...ann, scopes: ["more"], claims: { iss: "one", jti: "2" } })).toBe(ownerOf(ann));
    const owners = [
      undefined,
      ann,
      { subject: "ann" },
      { subject: "ann", claims: { iss: "two" } },
      { subject: "bob", claims: { iss: "one" } },
      { subject: 'ann","one' },
      { subject: "anonymous" },
    ].map(ownerOf);
    expect(new Set(owners).size).toBe(owners.length);
  });
});
