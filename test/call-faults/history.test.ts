import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createHistoryWriter, type HistoryEvent, parseHistory } from "./history.ts";

const EVENTS: readonly HistoryEvent[] = [
  { event: "run", id: "a\nb", operationId: "fault.once", pid: 1 },
  { event: "done", id: "a\nb" },
];

describe("a history", () => {
  it("Call faults: a history is read as it was written, by one writer after the other", () => {
    const folder = mkdtempSync(join(tmpdir(), "waybill-history-"));
    try {
      const path = join(folder, "x.jsonl");
      for (const event of EVENTS) createHistoryWriter(path)(event);
      expect(parseHistory("x", readFileSync(path, "utf8"), false)).toEqual({
        name: "x",
        killed: false,
        events: EVENTS,
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("Call faults: a torn last line is tolerated of a process that was killed, and of no other", () => {
    const text = '{"event":"done","id":"a"}\n{"event":"do';
    expect(parseHistory("x", text, true).events).toEqual([{ event: "done", id: "a" }]);
    expect(() => parseHistory("x", text, false)).toThrow("x: the last line is torn");
  });

  it.each(['{"event":"do\n{"event":"done","id":"a"}\n', '{"event":"eaten"}\n', "null\n", "\n"])(
    "Call faults: a line that cannot be read is an error anywhere else: %j",
    (text) => {
      expect(() => parseHistory("x", text, true)).toThrow("x:1: not a line of a history");
    },
  );
});
