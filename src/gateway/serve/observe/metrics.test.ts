import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { collect, query, rejection, stream } from "../../../../test/make-operation.ts";
import { serveCalls } from "../../../call/call-handler.ts";
import { createMemoryBus } from "../../../call/memory-bus.ts";
import { PendingRequestMap } from "../../../call/pending-request-map.ts";
import { createMemoryTransport } from "../../../call/wire/transport.ts";
import { createWireBus } from "../../../call/wire/wire-bus.ts";
import { toolError } from "../../../core/envelope/envelope.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { addCounters } from "../../sources/bus-source.ts";
import { Metrics, type MetricsOptions, writeMetric } from "./metrics.ts";
import { type CallRecord, createObserver } from "./observer.ts";

const open: Metrics[] = [];
afterEach(() => {
  for (const metrics of open.splice(0)) metrics.close();
});

function create(options: MetricsOptions = {}): Metrics {
  const metrics = new Metrics(options);
  open.push(metrics);
  return metrics;
}

const record = (more: Partial<CallRecord> = {}): CallRecord => ({
  requestId: "r",
  operation: "desk.ask",
  isKnown: true,
  source: "desk",
  outcome: "ok",
  durationMs: 1,
  ...more,
});

interface Parsed {
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (NaN|[+-]Inf|[+-]?[\d.]+(?:e[+-]?\d+)?)$/;
const LABEL = /^([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/;

/** Reads the text format as strictly as its description: anything else throws. */
function parse(text: string): Parsed[] {
  expect(text.endsWith("\n")).toBe(true);
  const types = new Map<string, string>();
  const samples: Parsed[] = [];
  for (const line of text.slice(0, -1).split("\n")) {
    const [, comment, name = "", rest] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (comment === "TYPE") {
      if (types.has(name)) throw new Error(`${name} comes twice`);
      types.set(name, rest ?? "");
    }
    if (comment !== undefined) continue;
    samples.push(parseSample(line, types));
  }
  const keys = samples.map(({ name, labels }) => JSON.stringify([name, labels]));
  expect(new Set(keys).size).toBe(keys.length);
  return samples;
}

function parseSample(line: string, types: ReadonlyMap<string, string>): Parsed {
  const [, name = "", labelText = "", value = ""] = LINE.exec(line) ?? [];
  if (name === "") throw new Error(`No sample: ${line}`);
  const family = types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, "");
  if (!types.has(family)) throw new Error(`${name} has no type`);
  const labels: Record<string, string> = {};
  for (let rest = labelText; rest !== ""; ) {
    const [whole, key = "", escaped = ""] = LABEL.exec(rest) ?? [];
    if (whole === undefined) throw new Error(`No labels: ${labelText}`);
    labels[key] = escaped.replace(/\\([\\"n])/g, (_, c) => (c === "n" ? "\n" : c));
    rest = rest.slice(whole.length);
  }
  return { name, labels, value: Number(value.replace("Inf", "Infinity")) };
}

const named = (metrics: Metrics, name: string) => parse(metrics.text()).filter((one) => one.name === name);

describe("Metrics", () => {
  it("RE-30 counts calls by what they were and how they ended, and those that run", () => {
    const metrics = create();
    for (let i = 0; i < 3; i++) metrics.begin();
    metrics.end(record());
    metrics.end(record({ outcome: "call_error", code: "UNAVAILABLE", cached: true }));
    const labels = { operation: "desk.ask", source: "desk" };
    expect(named(metrics, "waybill_calls_total")).toEqual([
      { name: "waybill_calls_total", labels: { ...labels, outcome: "ok", code: "" }, value: 1 },
      {
        name: "waybill_calls_total",
        labels: { ...labels, outcome: "call_error", code: "UNAVAILABLE" },
        value: 1,
      },
    ]);
    expect(named(metrics, "waybill_calls_in_flight")[0]?.value).toBe(1);
    expect(named(metrics, "waybill_cache_hits_total")[0]?.value).toBe(1);
  });

  it("RE-30 puts durations into buckets that add up, each bound within its own", () => {
    const metrics = create();
    for (const durationMs of [1, 1.001, 60_000, 60_001]) {
      metrics.begin();
      metrics.end(record({ durationMs }));
    }
    const buckets = named(metrics, "waybill_call_duration_seconds_bucket");
    const at = (le: string) => buckets.find(({ labels }) => labels["le"] === le)?.value;
    expect([at("0.001"), at("0.0025"), at("60"), at("+Inf")]).toEqual([1, 2, 3, 4]);
    expect(named(metrics, "waybill_call_duration_seconds_count")[0]?.value).toBe(4);
    expect(named(metrics, "waybill_call_duration_seconds_sum")[0]?.value).toBeCloseTo(120.003, 3);
  });

  it("RE-30 keeps as many series as allowed and counts the rest together, as it does names nobody knows", () => {
    const metrics = create({ series: 2 });
    for (const operation of ["a.a", "b.b", "c.c", "d.d", "a.a"]) {
      metrics.begin();
      metrics.end(record({ operation }));
    }
    metrics.begin();
    metrics.end(record({ operation: "made.up", isKnown: false }));
    const counts = named(metrics, "waybill_calls_total").map(({ labels, value }) => [
      labels["operation"],
      value,
    ]);
    expect(counts).toEqual([
      ["a.a", 2],
      ["b.b", 1],
      ["other", 3],
    ]);
  });

  it("RE-30 X-6 takes codes that tools make up for one and the same", () => {
    const metrics = create();
    for (let i = 0; i < 50; i++) {
      metrics.begin();
      metrics.end(record({ outcome: "tool_error", code: `E${i}` }));
    }
    expect(named(metrics, "waybill_calls_total")).toMatchObject([{ labels: { code: "other" }, value: 50 }]);
  });

  it("RE-30 says which sources are up and how many operations they have, and how the process is", () => {
    const metrics = create({
      sources: () => [
        { name: "files", kind: "mcp", state: { status: "up", since: 1 }, operations: 7 },
        {
          name: 'odd "one"\\',
          kind: "openapi",
          state: { status: "down", since: 1, reason: "" },
          operations: 0,
        },
      ],
    });
    expect(named(metrics, "waybill_source_up")).toMatchObject([
      { labels: { source: "files", kind: "mcp" }, value: 1 },
      { labels: { source: 'odd "one"\\' }, value: 0 },
    ]);
    expect(named(metrics, "waybill_source_operations")[0]?.value).toBe(7);
    expect(named(metrics, "process_resident_memory_bytes")[0]?.value).toBeGreaterThan(1e6);
    expect(named(metrics, "process_uptime_seconds")[0]?.value).toBeGreaterThan(0);
    expect(named(metrics, "nodejs_eventloop_lag_max_seconds")[0]?.value).toBeGreaterThanOrEqual(0);
  });

  it("RE-17 counts calls on a bus by end, outcome and code, with durations, values and bytes", async () => {
    const metrics = create();
    expect(metrics.text()).not.toContain("waybill_bus");
    const bus = createWireBus(createMemoryTransport());
    bus.onCall(createObserver({ metrics }).busCall);
    const operations = [
      query("desk.say", (input) => input),
      query("desk.no", () => toolError(0, { code: "MADE_UP" })),
      query("desk.hang", () => new Promise(() => {})),
      stream("desk.two", async function* () {
        yield* [1, 2];
      }),
    ];
    await serveCalls(new OperationRegistry(operations), bus);
    const map = new PendingRequestMap(bus);
    await map.call("desk.say", "x".repeat(1_000));
    await map.call("desk.no");
    await collect(map.subscribe("desk.two"));
    await rejection(map.call("desk.nobody"));
    const hanging = rejection(map.call("desk.hang"));
    const at = (name: string, labels: Record<string, string>) =>
      named(metrics, name).find((one) => JSON.stringify(one.labels) === JSON.stringify(labels))?.value;
    const caller = { end: "caller" };
    expect(at("waybill_bus_calls_total", { ...caller, outcome: "ok", code: "" })).toBe(2);
    expect(at("waybill_bus_calls_total", { ...caller, outcome: "tool_error", code: "other" })).toBe(1);
    expect(at("waybill_bus_calls_total", { ...caller, outcome: "call_error", code: "NO_RESPONDER" })).toBe(1);
    expect(at("waybill_bus_calls_total", { end: "handler", outcome: "ok", code: "" })).toBe(2);
    expect(at("waybill_bus_call_duration_seconds_count", { ...caller, outcome: "ok" })).toBe(2);
    expect(at("waybill_bus_calls_in_flight", caller)).toBe(1);
    expect(at("waybill_bus_values_total", caller)).toBe(2);
    expect(at("waybill_bus_bytes_total", { ...caller, direction: "received" })).toBeGreaterThan(1_000);
    expect(metrics.text()).not.toContain("MADE_UP");
    await bus.close();
    await hanging;
    expect(at("waybill_bus_calls_in_flight", caller)).toBe(0);
  });

  it("RE-17 counts what a bus dropped, retried and left out, by end, and says whom calls keep away from", async () => {
    const bus = createMemoryBus();
    const fail = () => {
      throw new CallError("UNAVAILABLE");
    };
    const sick = query("desk.say", fail, { annotations: { idempotent: true } });
    const handler = await serveCalls(new OperationRegistry([sick]), bus);
    const map = new PendingRequestMap(bus, { circuitBreaker: { failures: 2 } });
    await rejection(map.call("desk.say", 1, { retry: { attempts: 2, delayMs: 0 }, requestId: "r" }));
    expect(await rejection(map.call("desk.say", 1, { requestId: "r" }))).toMatchObject({
      code: "UNAVAILABLE",
    });
    const report = {
      counters: addCounters(map.counters, bus.counters),
      membersLeftOut: bus.leftOut.length,
      openCircuits: map.openCircuits.length,
    };
    const up = { status: "up", since: 0 } as const;
    const metrics = create({
      sources: () => [{ name: "bus", kind: "bus", state: up, operations: 1, bus: report }],
      served: () => handler.counters,
    });
    const events = named(metrics, "waybill_bus_events_total");
    const at = (end: string, event: string) =>
      events.find(({ labels }) => labels["end"] === end && labels["event"] === event)?.value;
    expect([at("caller", "ejected"), at("caller", "retried"), at("caller", "circuitOpen")]).toEqual([
      1, 1, 1,
    ]);
    expect(at("handler", "overLimit")).toBe(0);
    expect(named(metrics, "waybill_bus_members_left_out")).toMatchObject([
      { labels: { source: "bus" }, value: 1 },
    ]);
    expect(named(metrics, "waybill_bus_circuits_open")[0]?.value).toBe(1);
  });

  it("RE-30 X-6 writes any label so that it is read back, but for characters that are none", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.double(), (label, value) => {
        const [sample] = parse(
          writeMetric({ name: "m", type: "gauge", help: "Help." }, [{ labels: { label }, value }]),
        );
        const shown = label.replace(/(?!\n)[\p{Cc}\p{Cs}\u2028\u2029]/gu, "\ufffd");
        expect(sample?.labels["label"]).toBe(shown);
        expect(sample?.value).toBe(value + 0 === 0 ? 0 : value);
      }),
    );
  });
});
