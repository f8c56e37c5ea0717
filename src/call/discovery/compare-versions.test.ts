import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isSemanticVersion } from "../../core/operation/semantic-version.ts";
import { compareVersions } from "./offer-table.ts";

/** Oldest first; the order that the specification of semantic versions gives, and what it leads to. */
const ORDERED = [
  "0.0.1",
  "0.9.0",
  "0.10.0",
  "1.0.0-0",
  "1.0.0-2",
  "1.0.0-10",
  "1.0.0-alpha",
  "1.0.0-alpha.1",
  "1.0.0-alpha.beta",
  "1.0.0-beta",
  "1.0.0-beta.2",
  "1.0.0-beta.11",
  "1.0.0-rc-1.1",
  "1.0.0",
  "1.0.1",
  "1.2.0",
  "1.10.0",
  "2.0.0",
  "99999999999999999998.0.0",
  "99999999999999999999.0.0",
];

const version = fc
  .tuple(
    fc.nat(20),
    fc.nat(20),
    fc.nat(20),
    fc.constantFrom("", "-1", "-a", "-a.1", "-10.b"),
    fc.constantFrom("", "+x"),
  )
  .map(([major, minor, patch, pre, build]) => `${major}.${minor}.${patch}${pre}${build}`);

describe("compareVersions", () => {
  it("Discovery: orders versions by precedence", () => {
    expect(ORDERED.every(isSemanticVersion)).toBe(true);
    for (const [i, a] of ORDERED.entries()) {
      for (const [j, b] of ORDERED.entries()) {
        expect([a, b, Math.sign(compareVersions(a, b))]).toEqual([a, b, Math.sign(i - j)]);
      }
    }
  });

  it("Discovery: does not look at the build", () => {
    expect(compareVersions("1.0.0+a", "1.0.0+b-2")).toBe(0);
    expect(compareVersions("1.0.0-a+z", "1.0.0-a")).toBe(0);
  });

  it("Discovery: is an order, whichever versions are compared", () => {
    fc.assert(
      fc.property(version, version, version, (a, b, c) => {
        expect(Math.sign(compareVersions(a, b)) + Math.sign(compareVersions(b, a))).toBe(0);
        expect(compareVersions(a, a)).toBe(0);
        if (compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0) {
          expect(compareVersions(a, c)).toBeLessThanOrEqual(0);
        }
      }),
    );
  });
});
