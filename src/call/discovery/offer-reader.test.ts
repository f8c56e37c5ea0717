import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { OfferReader, type ReadingSteps } from "./service-directory.ts";

/** A clock that only the work moves, so that a busy machine changes nothing. */
let now = 0;
let taken = 0;
let applied: string[] = [];

beforeEach(() => {
  [now, taken, applied] = [0, 0, []];
  vi.spyOn(performance, "now").mockImplementation(() => now);
});

afterEach(() => {
  vi.restoreAllMocks();
});

function* slow(text: string, steps: number, ms: number): ReadingSteps<string> {
  for (let i = 0; i < steps; i++) {
    now += ms;
    taken++;
    yield;
  }
  return text;
}

const reading = (text: string, size: number, steps: number, ms: number) => ({
  size,
  steps: slow(text, steps, ms),
  apply: (outcome: string) => void applied.push(outcome),
});

const turn = () => new Promise((resolve) => setTimeout(resolve, 0));

describe("OfferReader", () => {
  it("Discovery: reads what is small at once, up to a hundred milliseconds of it", async () => {
    const reader = new OfferReader<string>();
    reader.read("a", reading("a", 49, 9, 10));
    expect([applied, reader.isBusy]).toEqual([["a"], false]);
    reader.read("b", reading("b", 1, 2, 10));
    expect([applied, reader.isBusy, taken]).toEqual([["a"], true, 10]);
    reader.read("c", reading("c", 1, 1, 10));
    expect(taken).toBe(10);
    await reader.settled();
    expect(applied).toEqual(["a", "b", "c"]);
  });

  it("Discovery: reads at once again when time has passed", () => {
    const reader = new OfferReader<string>();
    reader.read("a", reading("a", 1, 9, 10));
    now += 50;
    reader.read("b", reading("b", 1, 5, 10));
    expect(applied).toEqual(["a", "b"]);
    reader.read("c", reading("c", 1, 2, 10));
    expect(applied).toEqual(["a", "b"]);
    reader.stop();
  });

  it("Discovery: reads the rest one after the other, ten milliseconds at a time", async () => {
    const reader = new OfferReader<string>();
    reader.read("a", reading("a", 50, 15, 1));
    reader.read("b", reading("b", 50, 15, 1));
    expect(taken).toBe(0);
    await turn();
    expect([taken, applied]).toEqual([10, []]);
    await turn();
    expect([taken, applied]).toEqual([20, ["a"]]);
    await turn();
    expect([taken, applied, reader.isBusy]).toEqual([30, ["a"], true]);
    await turn();
    expect([applied, reader.isBusy]).toEqual([["a", "b"], false]);
  });

  it("Discovery: goes on with the others when what is read first is given up", async () => {
    const reader = new OfferReader<string>();
    for (const id of ["a", "b"]) reader.read(id, reading(id, 50, 15, 1));
    await turn();
    reader.drop("a");
    reader.drop("nobody");
    await reader.settled();
    expect(applied).toEqual(["b"]);
  });

  it("Discovery: can be stopped, and given more to read, by what it tells", async () => {
    const reader = new OfferReader<string>();
    const stopping = { ...reading("a", 50, 1, 1), apply: () => reader.stop() };
    reader.read("a", stopping);
    reader.read("b", reading("b", 50, 1, 1));
    await reader.settled();
    await turn();
    expect([applied, reader.isBusy]).toEqual([[], false]);
    const asking = {
      ...reading("c", 50, 1, 1),
      apply: () => {
        reader.stop();
        reader.read("d", reading("d", 50, 25, 1));
        reader.read("c", reading("c again", 50, 1, 1));
      },
    };
    reader.read("c", asking);
    reader.read("e", reading("e", 50, 1, 1));
    await reader.settled();
    expect([applied, reader.isBusy]).toEqual([["d", "c again"], false]);
  });
});
