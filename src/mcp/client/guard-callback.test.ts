import { afterEach, describe, expect, it, vi } from "vitest";
import { guardCallback } from "./guard-callback.ts";

afterEach(() => void vi.restoreAllMocks());

describe("guardCallback", () => {
  it("X-4 passes everything on, and tells once of what is thrown, now or later", async () => {
    const said = vi.spyOn(console, "warn").mockImplementation(() => {});
    const heard: unknown[] = [];
    const fine = guardCallback("onIt", (a: number, b: string) => void heard.push(a, b));
    fine(1, "b");
    expect(heard).toEqual([1, "b"]);
    const sync = guardCallback("onWarning", () => {
      throw new Error("a bug");
    });
    sync();
    sync();
    const late = guardCallback("onLater", async () => {
      throw null;
    });
    late();
    await new Promise((resolve) => setImmediate(resolve));
    expect(said.mock.calls).toEqual([
      ["[waybill] onWarning threw, which is told once: a bug"],
      ["[waybill] onLater threw, which is told once."],
    ]);
  });
});
