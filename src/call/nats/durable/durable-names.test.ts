import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { consumerName, DurableNames, hashOf, requestToken } from "./durable-codec.ts";

const letters = "AZaz09_".split("");
const namespace = fc
  .tuple(fc.constantFrom(...letters), fc.string({ unit: fc.constantFrom(...letters, "-"), maxLength: 63 }))
  .map((parts) => parts.join(""));
const name = fc
  .tuple(
    fc.constantFrom(...letters),
    fc.string({ unit: fc.constantFrom(...letters, "-", ".", "/", "d", "s"), maxLength: 199 }),
  )
  .map((parts) => parts.join(""));
const operationId = fc.tuple(namespace, name).map((parts) => parts.join("."));
const names = new DurableNames("p");

describe("names on the broker", () => {
  it("Durable: the subject of a request reads back, for any operation and request id", () => {
    fc.assert(
      fc.property(operationId, fc.string({ minLength: 1 }), (id, requestId) => {
        const address = { user: "ada", operationId: id, token: requestToken("ada", requestId) };
        const subject = names.request(address);
        expect(subject.split(".")).toHaveLength(6);
        expect(subject).not.toMatch(/[*>\s]/);
        expect(names.parseRequest(subject)).toEqual(address);
      }),
    );
  });

  it("Durable: no two operations share a consumer or a filter, and the broker takes every name", () => {
    fc.assert(
      fc.property(operationId, operationId, (one, other) => {
        expect(consumerName(one)).toMatch(/^[A-Za-z0-9_~-]{1,200}$/);
        expect(consumerName(one) === consumerName(other)).toBe(one === other);
        expect(names.requestsOf(one) === names.requestsOf(other)).toBe(one === other);
      }),
    );
    const near = ["a.b.c", "a.b/c", "a.b~dc".replace("~", "-"), "a.bdc", "a.b-c", "a_b.c", "a.b_c"];
    expect(new Set(near.map(consumerName)).size).toBe(near.length);
  });

  it("Durable: a consumer name of 200 characters stays readable, one more is hashed", () => {
    expect(consumerName(`a.${"b".repeat(198)}`)).toBe(`a~${"b".repeat(198)}`);
    expect(consumerName(`a.${"b".repeat(199)}`)).toMatch(/^~[A-Za-z0-9_-]{43}$/);
  });

  it.each([
    "p.durable",
    "p.durable.u.n.m",
    "p.durable.u.n.m.t.x",
    "p.durable..n.m.t",
    "q.durable.u.n.m.t",
    "",
  ])("Durable: %j is no subject of a request", (subject) => {
    expect(names.parseRequest(subject)).toBeUndefined();
  });

  it("Durable: hashes tell lists apart that join alike", () => {
    expect(hashOf("a", "bc")).not.toBe(hashOf("ab", "c"));
    expect(hashOf(null)).not.toBe(hashOf("null"));
    expect(requestToken("ada", "1")).not.toBe(requestToken("bob", "1"));
  });
});
