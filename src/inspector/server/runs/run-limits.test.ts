import { afterEach, describe, expect, it, vi } from "vitest";
import { as, type InspectedGateway, inspectGateway, TOKENS } from "../../../../test/inspected-gateway.ts";
import { query, until } from "../../../../test/make-operation.ts";
import type { GatewayConfig } from "../../../gateway/config/gateway-config.ts";
import type { CallView, Failure, RunEvent } from "../../protocol.ts";

/** Calls that have begun to wait. */
let waiting = 0;

function operations() {
  return [
    query("desk.echo", () => "done"),
    query("desk.long", (input) => "x".repeat((input as { length: number }).length)),
    query("desk.length", (input) => (input as string).length),
    query("desk.patience", (_, { deadline = Number.NaN }) => deadline - performance.now()),
    query("desk.wait", (_, { signal }) => {
      waiting += 1;
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    }),
  ];
}

let open: InspectedGateway | undefined;
afterEach(async () => {
  await open?.close();
  open = undefined;
});

async function start(config: GatewayConfig = {}): Promise<InspectedGateway> {
  waiting = 0;
  open = await inspectGateway(operations(), config);
  return open;
}

async function failureOf(response: Response): Promise<[number, string]> {
  const { error } = (await response.json()) as Failure;
  return [response.status, error.code];
}

/** Has calls wait until they are left. */
async function fill(inspected: InspectedGateway, count: number, headers: Record<string, string> = {}) {
  const leaving = new AbortController();
  const wanted = waiting + count;
  for (let at = 0; at < count; at++) {
    inspected
      .ask("run", { body: { operation: "desk.wait" }, headers, signal: leaving.signal })
      .catch(() => {});
  }
  await until(() => waiting === wanted);
  return leaving;
}

describe("calls of pages", () => {
  it("run sixty-four at a time, and not one more until places are free again", async () => {
    const inspected = await start();
    for (const round of [1, 2]) {
      const leaving = await fill(inspected, 64);
      const refused = await inspected.ask("run", { body: { operation: "desk.echo" } });
      expect(await failureOf(refused)).toEqual([429, "RESOURCE_EXHAUSTED"]);
      leaving.abort();
      await vi.waitFor(
        async () => {
          for (let seq = (round - 1) * 64 + 1; seq <= round * 64; seq++) {
            const { row } = await inspected.get<CallView>(`call?seq=${seq}`);
            expect(row.outcome).toBe("call_error");
          }
        },
        { timeout: 30_000 },
      );
    }
  });

  it("run sixteen at a time for one caller, and others go on", async () => {
    const inspected = await start({ serve: { auth: { tokens: TOKENS } } });
    await fill(inspected, 16, as("ann"));
    const body = { operation: "desk.echo" };
    const refused = await inspected.ask("run", { body, headers: as("ann") });
    expect(await failureOf(refused)).toEqual([429, "RESOURCE_EXHAUSTED"]);
    const events = await inspected.run(body, { headers: as("bob") });
    expect(events.at(-1)).toMatchObject({ type: "end" });
    await fill(inspected, 1, as("bob"));
  });

  it("take a minute at most, or as long as the config says", async () => {
    const patience = async (inspected: InspectedGateway, timeoutMs?: number) => {
      const events = await inspected.run({ operation: "desk.patience", timeoutMs });
      return dataOf(events) as number;
    };
    const plain = await start();
    for (const [asked, most] of [
      [undefined, 60_000],
      [60_000, 60_000],
      [60_001, 60_000],
      [600_000, 60_000],
      [30_000, 30_000],
    ] as const) {
      const left = await patience(plain, asked);
      expect(left).toBeLessThanOrEqual(most);
      expect(left).toBeGreaterThan(most - 10_000);
    }
    await plain.close();
    const hurried = await start({ limits: { timeoutMs: 90_000 } });
    for (const asked of [undefined, 90_001]) {
      const left = await patience(hurried, asked);
      expect(left).toBeLessThanOrEqual(90_000);
      expect(left).toBeGreaterThan(80_000);
    }
  });

  it("take an input of four mebibytes", async () => {
    const inspected = await start();
    const [before, after] = ['{"operation":"desk.length","input":"', '"}'];
    const room = 4_194_304 - before.length - after.length;
    const run = (length: number) => inspected.ask("run", { body: `${before}${"x".repeat(length)}${after}` });
    expect(await (await run(room)).text()).toContain(`"data":${room}`);
    expect((await run(room + 1)).status).toBe(413);
  });

  it("send a result of eight mebi characters, and not of one more", async () => {
    const inspected = await start();
    const most = 8 * 1_024 * 1_024;
    const long = async (length: number) => {
      const [, told] = await inspected.run({ operation: "desk.long", input: { length } });
      return told;
    };
    const lengthOf = (told: RunEvent | undefined) =>
      told?.type === "result" ? JSON.stringify(told.result).length : Number.NaN;
    const around = lengthOf(await long(0));
    // How long the call took is a part of the result, and has more digits at one time than at another.
    for (let more = -8; more <= 8; more += 1) {
      const told = await long(most - around + more);
      if (told?.type === "result") expect(lengthOf(told)).toBeLessThanOrEqual(most);
      else {
        expect(told).toMatchObject({ type: "result-omitted", reason: "too-long" });
        expect(told?.type === "result-omitted" && told.characters).toBeGreaterThan(most);
      }
    }
    expect(await long(most - around - 50)).toMatchObject({ type: "result" });
    expect(await long(most - around + 50)).toMatchObject({ type: "result-omitted" });
    expect((await inspected.get<CallView>("call?seq=2")).results).toEqual([{ omitted: "too-long" }]);
  });
});

function dataOf(events: readonly RunEvent[]): unknown {
  const told = events.find(({ type }) => type === "result");
  return told?.type === "result" ? told.result.envelope.data : undefined;
}
