import { describe, expect, it } from "vitest";
import { handGateway, handSource } from "../../../test/served-gateway.ts";
import type { ChangedTool } from "../../gateway/lock/changed-tools.ts";
import type { Source } from "../../gateway/sources/source.ts";
import { followSources } from "./announce.ts";

const UP = { status: "up", since: 0 } as const;

function locked(name: string, tools: readonly string[]): Source {
  const source = handSource(name, UP);
  const changed: readonly ChangedTool[] = tools.map((tool) => ({ tool, kind: "changed", diff: [] }));
  return { ...source, report: () => ({ ...source.report(), changed }) };
}

describe("following sources", () => {
  it("counts operations after policies, and before them where that differs", () => {
    const source = handSource("shop", UP);
    const gateway = handGateway([]);
    const lines: unknown[] = [];
    const log = { info: (...line: unknown[]) => void lines.push(line), warn: () => {} };
    const stop = followSources(gateway, { log, paste: (words) => words });
    gateway.setSources(source, {
      ...handSource("few", UP),
      report: () => ({ ...source.report(), name: "few", operations: 6, offered: 13 }),
    });
    stop();
    expect(lines).toEqual([
      ["source up", { source: "shop", operations: 3 }],
      ["source up", { source: "few", operations: 6, offered: 13 }],
    ]);
  });

  it("logs each state once, and tools that are refused until they are approved, when they are others", () => {
    const gateway = handGateway([]);
    const lines: string[] = [];
    const log = {
      info: (text: string) => void lines.push(text),
      warn: (text: string) => void lines.push(text),
    };
    const stop = followSources(gateway, {
      log,
      paste: (words) => `npx --no waybill ${words} --config a.json`,
    });
    gateway.setSources(locked("files", ["read"]));
    gateway.setSources(locked("files", ["read"]));
    gateway.setSources(locked("files", ["read", "write"]));
    gateway.setSources(locked("files", []));
    gateway.setSources();
    stop();
    gateway.setSources(locked("files", ["read"]));
    expect(lines).toEqual([
      "source up",
      '1 tool of "files" is refused until it is approved: read (changed). "npx --no waybill lock files --config a.json" shows why, "npx --no waybill lock --approve files --config a.json" approves it.',
      expect.stringContaining(
        '2 tools of "files" are refused until they are approved: read (changed), write',
      ),
      "source gone",
    ]);
  });
});
