import { describe, expect, it } from "vitest";
import { checkHistory, checkSummary, summarize } from "./history.js";

type FleetEvent = Parameters<typeof checkHistory>[0][number];
type Outcome = Extract<FleetEvent, { event: "settled" }>["outcome"];

const OWNERS = ["ann", "ben", "cid"];
const KINDS = ["read", "order", "keyed order"] as const;
const VIAS = ["http", "mcp-2025", "mcp-2026"] as const;

/** A history in which everything was kept, with one order that nobody knows about and one that was turned down. */
function goodHistory() {
  const events: FleetEvent[] = [];
  const runs: { call: number; owner: string }[] = [];
  for (let call = 0; call < 30; call++) {
    const owner = OWNERS[call % 3] ?? "";
    const kind = KINDS[Math.floor(call / 3) % 3] ?? "read";
    const via = VIAS[call % 3] ?? "http";
    const key = kind === "keyed order" ? { key: `key-${Math.floor(call / 3)}` } : {};
    events.push({ event: "asked", call, owner, via, kind, ...key });
    if (kind !== "read") runs.push({ call, owner });
    events.push(settled(call, { ok: true, call, owner }));
  }
  events.push({ event: "asked", call: 30, owner: "ann", via: "http", kind: "keyed order", key: "key-10" });
  events.push(settled(30, { ok: false, unknown: true, why: "CONFLICT" }));
  runs.push({ call: 30, owner: "ann" });
  events.push({ event: "asked", call: 31, owner: "ben", via: "http", kind: "order" });
  events.push(settled(31, { ok: false, unknown: false, why: "cut off" }));
  events.push({
    event: "asked again",
    call: 6,
    outcome: { ok: true, call: 6, owner: "ann", replayed: true },
  });
  return { events, runs };
}

function settled(call: number, outcome: Outcome): FleetEvent {
  return { event: "settled", call, outcome, attempts: 1, ms: 1 };
}

/** The keyed orders, which were all acknowledged. */
const KEYED = 6;

describe("the checker of fleets", () => {
  it("finds nothing where every promise was kept", () => {
    const { events, runs } = goodHistory();
    expect(checkHistory(events, runs)).toEqual([]);
    expect(summarize(events, runs)).toMatchObject({
      calls: 32,
      succeeded: 30,
      unknown: 1,
      failed: { "cut off": 1 },
    });
  });

  it("finds an order that ran twice, one with a key and one without", () => {
    for (const call of [KEYED, 3]) {
      const { events, runs } = goodHistory();
      const owner = OWNERS[call % 3] ?? "";
      expect(checkHistory(events, [...runs, { call, owner }])).toEqual([
        expect.stringMatching(new RegExp(`^Call ${call} over .* ran 2 times\\.$`)),
      ]);
    }
  });

  it("finds that an order of which nobody knows ran twice", () => {
    const { events, runs } = goodHistory();
    expect(checkHistory(events, [...runs, { call: 30, owner: "ann" }])).toHaveLength(1);
  });

  it("finds an order that was acknowledged and never ran", () => {
    const { events, runs } = goodHistory();
    const lost = runs.filter(({ call }) => call !== KEYED);
    expect(checkHistory(events, lost)).toEqual([`Call ${KEYED} over http was acknowledged and never ran.`]);
  });

  it("finds an acknowledged order that is forgotten, or runs as a new one, when it is asked for again", () => {
    const { events, runs } = goodHistory();
    const again = (outcome: Outcome): FleetEvent => ({ event: "asked again", call: KEYED, outcome });
    const forgotten = again({ ok: false, unknown: false, why: "INTERNAL" });
    const anew = again({ ok: true, call: KEYED, owner: "ann", replayed: false });
    expect(checkHistory([...events, forgotten], runs)).toEqual([
      expect.stringContaining("was acknowledged, and later"),
    ]);
    expect(checkHistory([...events, anew], runs)).toEqual([expect.stringContaining("was no repetition")]);
  });

  it("finds a call that settled twice, and one that never did", () => {
    const { events, runs } = goodHistory();
    const twice = settled(4, { ok: true, call: 4, owner: "ben" });
    expect(checkHistory([...events, twice], runs)).toEqual(["Call 4 settled twice."]);
    const never = events.filter((event) => event.event !== "settled" || event.call !== 4);
    expect(checkHistory(never, runs)).toEqual(["Call 4 over mcp-2025 never settled."]);
  });

  it("finds an answer that belongs to another caller, or to another call", () => {
    const { events, runs } = goodHistory();
    const answered = (call: number, owner: string) =>
      events.map((event) =>
        event.event === "settled" && event.call === KEYED ? settled(KEYED, { ok: true, call, owner }) : event,
      );
    expect(checkHistory(answered(KEYED + 1, "ben"), runs)).toEqual([
      `Call ${KEYED} of ann was answered with what ben asked for.`,
    ]);
    expect(checkHistory(answered(KEYED + 3, "ann"), runs)).toEqual([
      `Call ${KEYED} was answered with what belongs to call ${KEYED + 3}.`,
    ]);
  });

  it("finds an order that ran for somebody else, or that nobody asked for", () => {
    const { events, runs } = goodHistory();
    const changed = runs.map((run) => (run.call === KEYED ? { ...run, owner: "ben" } : run));
    expect(checkHistory(events, changed)).toEqual([`Call ${KEYED} of ben ran, and nobody had asked for it.`]);
    expect(checkHistory(events, [...runs, { call: 99, owner: "ann" }])).toHaveLength(1);
  });

  it("finds too many calls that fail or are not known, at the bound and one more", () => {
    const none = { gaveUp: 0, again: 300, forgotten: 3 };
    const summaryOf = (succeeded: number, unknown: number) => ({ calls: 1_000, succeeded, unknown, ...none });
    expect(checkSummary(summaryOf(950, 1))).toEqual([]);
    expect(checkSummary(summaryOf(949, 1))).toHaveLength(1);
    expect(checkSummary(summaryOf(950, 2))).toHaveLength(1);
    expect(checkSummary(summaryOf(950, 11), 0.01)).toHaveLength(1);
    // An order whose client was told nothing is not named.
    expect(checkSummary({ ...summaryOf(950, 1), gaveUp: 1 })).toHaveLength(1);
    expect(checkSummary({ ...summaryOf(950, 1), forgotten: 4 })).toHaveLength(1);
    expect(checkSummary(summarize([], []))).toContain("No call was made.");
  });
});
