import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { RunEvents } from "./run-operation.ts";

/** A response of which so many bytes have not been taken yet. */
function waitingFor(writableLength: number) {
  const written: string[] = [];
  const response = { writableLength, write: (text: string) => written.push(text) };
  return { events: new RunEvents(response as unknown as ServerResponse, (json) => json), written };
}

describe("events of a call", () => {
  it("leave out what is said meanwhile once more than a mebibyte waits, and nothing else", () => {
    const most = 1_024 * 1_024;
    const kept = waitingFor(most);
    kept.events.sendIfHeard({ type: "progress", value: 1 });
    expect(kept.written).toEqual(['{"type":"progress","value":1}\n']);
    const full = waitingFor(most + 1);
    full.events.sendIfHeard({ type: "progress", value: 1 });
    expect(full.written).toEqual([]);
    full.events.send({ type: "end", durationMs: 1, values: 0 });
    expect(full.written).toHaveLength(1);
  });
});
