import { describe, expect, it } from "vitest";
import { SourceTraffic, type SourceWire } from "./source-traffic.ts";

const same = (text: string): string => text;
const lines = (heard: readonly SourceWire[]): readonly string[] =>
  heard.map(({ event }) => (event.type === "stderr" ? event.line : event.type));

describe("what passes between a gateway and its MCP servers", () => {
  it("is told to those who watch, and to nobody who has stopped", () => {
    const traffic = new SourceTraffic();
    const tell = traffic.tellerOf("notes");
    const heard: SourceWire[] = [];
    tell({ type: "received", message: {} }, same);
    const stop = traffic.watch((wire) => heard.push(wire));
    tell({ type: "sent", text: "{}", request: undefined }, same);
    stop();
    tell({ type: "received", message: {} }, same);
    expect(lines(heard)).toEqual(["sent"]);
    expect(heard[0]?.source).toBe("notes");
  });

  it("holds the last 50 lines of standard error of each source for whoever comes later", () => {
    const traffic = new SourceTraffic();
    for (let at = 0; at <= 50; at += 1)
      traffic.tellerOf("notes")({ type: "stderr", line: `line ${at}` }, same);
    traffic.tellerOf("others")({ type: "stderr", line: "other" }, same);
    const heard: SourceWire[] = [];
    traffic.watch((wire) => heard.push(wire));
    expect(heard).toHaveLength(51);
    expect(lines(heard)).not.toContain("line 0");
    expect(lines(heard).slice(-2)).toEqual(["line 50", "other"]);
  });

  it("holds no line of more than 2,000 characters, and nothing of sources that are gone", () => {
    const traffic = new SourceTraffic();
    const tell = traffic.tellerOf("notes");
    tell({ type: "stderr", line: "x".repeat(2_000) }, same);
    tell({ type: "stderr", line: "x".repeat(2_001) }, same);
    traffic.tellerOf("gone")({ type: "stderr", line: "last words" }, same);
    traffic.keepOnly(new Set(["notes"]));
    const heard: SourceWire[] = [];
    traffic.watch((wire) => heard.push(wire));
    expect(lines(heard).map((line) => line.length)).toEqual([2_000]);
  });
});
