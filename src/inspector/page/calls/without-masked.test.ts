import { describe, expect, it } from "vitest";
import { withoutMasked } from "./call-detail.tsx";

describe("withoutMasked", () => {
  it("leaves out members and lists that hold a mask, at any depth", () => {
    const value = { user: "ada", password: "•••", deep: { key: "•••", list: ["•••", "a"], kept: [1] } };
    expect(withoutMasked({ value })).toEqual({ value: { user: "ada", deep: { kept: [1] } } });
  });

  it("gives nothing where the whole input is masked, or none is kept", () => {
    expect(withoutMasked({ value: "•••" })).toEqual({});
    expect(withoutMasked({ omitted: "none" })).toEqual({ omitted: "none" });
  });

  it("leaves an input without secrets as it is", () => {
    const input = { value: { dots: "a •••" } };
    expect(withoutMasked(input)).toBe(input);
  });
});
