import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assignToolNames, MAX_TOOL_NAME, toToolName } from "./tool-name.ts";

const part = (alphabet: string, max: number) =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength: 1, maxLength: max });
const id = fc
  .tuple(part("ab_-Z9", 12), part("ab_-./Z9", 80))
  .map(([namespace, name]) => `${namespace}.${name}`);
const VALID = { false: /^[A-Za-z0-9_-]{1,64}$/, true: /^[A-Za-z0-9_.-]{1,64}$/ };

describe("toToolName", () => {
  it("RE-30 joins namespace and name where that stays clear", () => {
    expect(toToolName("math.add")).toBe("math_add");
    expect(toToolName("math.add.two", { dots: true })).toBe("math.add.two");
  });

  it("RE-30 keeps ids apart that would read alike", () => {
    const names = ["a.b_c", "a_b.c", "a.b.c", "a.b/c"].map((each) => toToolName(each));
    expect(new Set(names).size).toBe(4);
    expect(names[0]).toBe("a_b_c");
    expect(names[1]).toMatch(/^a_b_c__[a-z2-7]{13}$/);
  });

  it("RE-30 takes 64 characters and hashes the 65th", () => {
    expect(toToolName(`a.${"b".repeat(62)}`)).toBe(`a_${"b".repeat(62)}`);
    const long = toToolName(`a.${"b".repeat(63)}`);
    expect(long).toHaveLength(MAX_TOOL_NAME);
    expect(long).toMatch(/__[a-z2-7]{13}$/);
  });

  it("RE-30 does not let a plain name pass for a hashed one", () => {
    const hashed = toToolName("a_b.c");
    const forged = `a.${hashed.slice(2)}`;
    expect(toToolName(forged)).not.toBe(hashed);
  });
});

describe("assignToolNames", () => {
  it.each([{}, { dots: true }, { prefix: false }, { prefix: false, dots: true }])(
    "RE-30 names any ids differently and validly with %o",
    (naming) => {
      fc.assert(
        fc.property(fc.uniqueArray(id, { maxLength: 30 }), (ids) => {
          const names = [...assignToolNames(ids, naming).values()];
          expect(new Set(names).size).toBe(ids.length);
          for (const name of names) expect(name).toMatch(VALID[`${naming.dots ?? false}`]);
        }),
      );
    },
  );

  it("RE-30 leaves prefixes out except where names clash, then for all of them", () => {
    const names = assignToolNames(["a.x", "b.x", "c.y"], { prefix: false });
    expect([...names.values()]).toEqual(["a_x", "b_x", "y"]);
  });

  it("RE-30 gives way where a prefixed name is another's bare one", () => {
    const names = assignToolNames(["a.x", "b.x", "c.a_x"], { prefix: false });
    expect(Object.fromEntries(names)).toEqual({ "a.x": "a_x", "b.x": "b_x", "c.a_x": "c_a_x" });
  });
});
