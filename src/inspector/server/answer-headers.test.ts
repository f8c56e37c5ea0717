import { ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { as, type InspectedGateway, inspectGateway, TOKENS } from "../../../test/inspected-gateway.ts";
import { deferred, query, sleep, until } from "../../../test/make-operation.ts";

const LONG = 8_000_000;

let open: InspectedGateway | undefined;
afterEach(async () => {
  await open?.close();
  open = undefined;
});

async function start(writeTimeoutMs?: number, mayAnswer?: Promise<void>): Promise<InspectedGateway> {
  const serve = { auth: { tokens: TOKENS } };
  const long = query("desk.long", async () => {
    await mayAnswer;
    return "x".repeat(LONG);
  });
  open = await inspectGateway([long], { serve }, { writeTimeoutMs });
  return open;
}

/** Posts something, and reads nothing of the answer. */
function postWithoutReading({ port }: InspectedGateway, path: string, body: string): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  socket.pause();
  const headers = { host: "localhost", "content-type": "application/json", ...as("ann") };
  const lines = Object.entries({ ...headers, "content-length": body.length }).map((pair) => pair.join(": "));
  socket.write([`POST /inspect/api/${path} HTTP/1.1`, ...lines, "", body].join("\r\n"));
  return socket;
}

/** Counts answers that were cut off: who does not read does not learn of it. */
function watchCuts(): { readonly count: number } {
  const destroyed = vi.spyOn(ServerResponse.prototype, "destroy");
  onTestFinished(() => destroyed.mockRestore());
  return {
    get count() {
      return destroyed.mock.calls.length;
    },
  };
}

/** Reads what still comes: so many bytes, or what was on its way when it was cut off. */
async function readRest(socket: Socket, enough = LONG): Promise<number> {
  let bytes = 0;
  let isOver = false;
  socket.on("close", () => {
    isOver = true;
  });
  socket.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes >= enough) socket.destroy();
  });
  socket.resume();
  await until(() => isOver);
  return bytes;
}

const RUN = JSON.stringify({ operation: "desk.long" });

describe("a page that does not read its answer", () => {
  it("is cut off when its time is up, and gives the place of its call free", async () => {
    const { promise: mayAnswer, resolve: answer } = deferred();
    const inspected = await start(300, mayAnswer);
    const sockets = Array.from({ length: 16 }, () => postWithoutReading(inspected, "run", RUN));
    const status = async () => {
      const response = await inspected.ask("run", { body: { operation: "desk.none" }, headers: as("ann") });
      await response.text();
      return response.status;
    };
    await vi.waitFor(async () => expect(await status()).toBe(429), { timeout: 20_000, interval: 5 });
    const cuts = watchCuts();
    answer();
    await until(() => cuts.count >= sockets.length);
    await vi.waitFor(async () => expect(await status()).toBe(200), { timeout: 20_000 });
    const [first, ...others] = sockets;
    for (const socket of others) socket.destroy();
    expect(first && (await readRest(first))).toBeLessThan(LONG);
  });

  it("is given all of it when it reads in time", async () => {
    const inspected = await start();
    const socket = postWithoutReading(inspected, "run", RUN);
    await sleep(500);
    expect(await readRest(socket)).toBeGreaterThanOrEqual(LONG);
  });

  it("is cut off when it asked for formats as well", async () => {
    const rows = Array.from({ length: 300 }, (_, at) => ({ at, text: "y".repeat(6_500) }));
    const meta = { source: "local", operationId: "desk.long", timestamp: 1 };
    const body = JSON.stringify({ envelope: { data: rows, meta } });
    const patient = await start();
    const whole = await (await patient.ask("formats", { body, headers: as("ann") })).text();
    await patient.close();
    const cuts = watchCuts();
    const socket = postWithoutReading(await start(300), "formats", body);
    await until(() => cuts.count >= 1);
    expect(await readRest(socket, whole.length)).toBeLessThan(whole.length);
  });
});
