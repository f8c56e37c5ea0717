import { describe, expect, it } from "vitest";
import type { LoggedEvent, LoggedStream, SessionEventLog } from "../src/mcp/server/http/session-event-log.ts";
import { until } from "./mcp-requests.ts";

/** What one end of a log is opened with: two ends of one log are two replicas. */
export interface OpenedLog {
  readonly writer: SessionEventLog;
  readonly reader: SessionEventLog;
}

const stream = (name: string, owner = "ann", session = "s"): LoggedStream => ({
  owner,
  session,
  stream: name,
});
const event = (place: number): LoggedEvent => ({ place, json: `{"n":${place}}` });
const here = new AbortController().signal;

/** Every test of the contract, for one kind of log; `open` gives an empty one, as two replicas have it. */
export function describeSessionEventLog(name: string, open: () => Promise<OpenedLog>): void {
  /** What a replica finds of a stream, as it comes. */
  const follow = async (log: SessionEventLog, of: LoggedStream, after: number, signal = here) => {
    const found = await log.find(of, after, signal);
    if (found === undefined) return undefined;
    const places: number[] = [];
    const read = async (): Promise<string> => {
      for await (const { place, json } of found.events) {
        expect(json).toBe(event(place).json);
        places.push(place);
      }
      return "over";
    };
    const end = read().catch(() => "lost");
    return { asked: found.asked, isOver: found.isOver, places, end };
  };

  describe(`${name} as a log of session streams`, () => {
    it("Mcp: gives what went over a stream after a place, in order, and ends where it ended", async () => {
      const { writer, reader } = await open();
      await writer.open(stream("a"), [2, "three"]);
      for (const place of [2, 3, 7, 11]) await writer.append(stream("a"), event(place));
      await writer.end(stream("a"));
      const of = async (after: number) => {
        const found = await follow(reader, stream("a"), after);
        return [found?.asked, await found?.end, found?.places, found?.isOver];
      };
      expect(await of(0)).toEqual([[2, "three"], "over", [2, 3, 7, 11], false]);
      expect(await of(3)).toEqual([[2, "three"], "over", [7, 11], false]);
      expect(await of(5)).toEqual([[2, "three"], "over", [7, 11], false]);
      expect(await of(11)).toEqual([[2, "three"], "over", [], true]);
    });

    it("Mcp: gives what comes later to all who follow, each event once", async () => {
      const { writer, reader } = await open();
      await writer.open(stream("a"), [2]);
      await writer.append(stream("a"), event(1));
      const early = await follow(reader, stream("a"), 0);
      const late = await follow(reader, stream("a"), 1);
      await until(() => early?.places.length === 1);
      for (let place = 2; place <= 60; place++) await writer.append(stream("a"), event(place));
      await until(() => late?.places.length === 59);
      const third = await follow(reader, stream("a"), 30);
      await writer.append(stream("a"), event(61));
      await writer.end(stream("a"));
      expect([await early?.end, await late?.end, await third?.end]).toEqual(["over", "over", "over"]);
      const from = (first: number) => Array.from({ length: 62 - first }, (_, i) => first + i);
      expect([early?.places, late?.places, third?.places]).toEqual([from(1), from(2), from(31)]);
    });

    it("Mcp: keeps the order of calls that nobody waits for", async () => {
      const { writer, reader } = await open();
      const writing = [writer.open(stream("a"), [2])];
      for (let place = 1; place <= 100; place++) writing.push(writer.append(stream("a"), event(place)));
      writing.push(writer.end(stream("a")));
      await Promise.all(writing);
      const found = await follow(reader, stream("a"), 0);
      expect([await found?.end, found?.places]).toEqual([
        "over",
        Array.from({ length: 100 }, (_, i) => i + 1),
      ]);
    });

    it("X-4 keeps streams of other owners, sessions and names apart", async () => {
      const { writer, reader } = await open();
      const names = [stream("a"), stream("a", "bob"), stream("a", "ann", "t"), stream("b")];
      for (const [at, each] of names.entries()) {
        await writer.open(each, [at]);
        await writer.append(each, event(at + 1));
        await writer.end(each);
      }
      for (const [at, each] of names.entries()) {
        const found = await follow(reader, each, 0);
        expect([await found?.end, found?.asked, found?.places]).toEqual(["over", [at], [at + 1]]);
      }
      expect(await reader.find(stream("c"), 0, here)).toBeUndefined();
      expect(await reader.find(stream("b", "bob"), 0, here)).toBeUndefined();
    });

    it("Mcp: keeps nothing of a stream that was not begun, has ended, or has begun already", async () => {
      const { writer, reader } = await open();
      await expect(writer.append(stream("a"), event(1))).rejects.toThrow();
      expect(await reader.find(stream("a"), 0, here)).toBeUndefined();
      await writer.open(stream("a"), [2]);
      await expect(writer.open(stream("a"), [3])).rejects.toThrow();
      await writer.end(stream("a"));
      await writer.end(stream("a"));
      await expect(writer.append(stream("a"), event(2))).rejects.toThrow();
      const found = await follow(reader, stream("a"), 0);
      expect([await found?.end, found?.asked, found?.places]).toEqual(["over", [2], []]);
    });

    it("Mcp: gives nothing more to whoever has left", async () => {
      const { writer, reader } = await open();
      await writer.open(stream("a"), [2]);
      const leaving = new AbortController();
      const [gone, stays] = [
        await follow(reader, stream("a"), 0, leaving.signal),
        await follow(reader, stream("a"), 0),
      ];
      await writer.append(stream("a"), event(1));
      await until(() => gone?.places.length === 1 && stays?.places.length === 1);
      leaving.abort();
      expect(await gone?.end).toBe("over");
      await writer.append(stream("a"), event(2));
      await writer.end(stream("a"));
      expect([await stays?.end, gone?.places, stays?.places]).toEqual(["over", [1], [1, 2]]);
    });

    it("Mcp: says that the rest of a stream is lost where it is", async () => {
      const { writer, reader } = await open();
      await writer.open(stream("a"), [2]);
      await writer.append(stream("a"), event(1));
      const found = await follow(reader, stream("a"), 0);
      await until(() => found?.places.length === 1);
      await reader.close();
      expect(await found?.end).toBe("lost");
    });
  });
}
