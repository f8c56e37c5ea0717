import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { loadedConfig } from "../../../test/served-gateway.ts";
import { Metrics } from "../serve/observe/metrics.ts";
import type { CallRecord } from "../serve/observe/observer.ts";
import { type AuditTrail, openAuditTrail } from "./audit-trail.ts";

let folder: string;
let trail: AuditTrail;
let metrics: Metrics;
/** What the operators' log was told. */
let told: Readonly<Record<string, unknown>>[];

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  folder = mkdtempSync(join(tmpdir(), "waybill-trail-"));
  told = [];
  const log = {
    info: (_message: string, fields?: Readonly<Record<string, unknown>>) => void told.push(fields ?? {}),
    warn: () => {},
    error: () => {},
  };
  const config = loadedConfig({ audit: { file: join(folder, "audit.jsonl") } });
  trail = (await openAuditTrail(config, log)) as AuditTrail;
  metrics = new Metrics({ audit: () => trail.status });
});
afterEach(async () => {
  vi.useRealTimers();
  metrics.close();
  await trail.close();
  rmSync(folder, { recursive: true, force: true });
});

const call = () =>
  trail.end({ operation: "office.greet", outcome: "ok", isKnown: true } as unknown as CallRecord);
const heads = () => told.map(({ seq }) => seq);
const shown = () => /^waybill_audit_head_info\{(.*)\} 1$/m.exec(metrics.text())?.[1];

describe("the head of the audit", () => {
  it("goes to the log and to metrics each minute in which there were records, and at the end", async () => {
    call();
    call();
    vi.advanceTimersByTime(59_999);
    expect([heads(), shown()]).toEqual([[], expect.stringContaining('seq="0"')]);
    vi.advanceTimersByTime(1);
    await vi.waitFor(() => expect(heads()).toEqual([2]));
    const { head } = trail.status;
    expect(told[0]).toEqual({ event: "audit", seq: 2, head: head.hash });
    expect(shown()).toBe(`seq="2",head="${head.hash}"`);
    vi.advanceTimersByTime(60_000);
    call();
    vi.advanceTimersByTime(60_000);
    await vi.waitFor(() => expect(heads()).toEqual([2, 3]));
    call();
    await trail.close();
    expect(heads()).toEqual([2, 3, 4]);
    expect(shown()).toContain('seq="4"');
  });
});
