import { afterEach, describe, expect, it } from "vitest";
import { functionsRun } from "../../../../test/functions-run.ts";
import { type InspectedGateway, inspectGateway } from "../../../../test/inspected-gateway.ts";
import { query, rejection } from "../../../../test/make-operation.ts";
import { decodeToolResult } from "../../../formats/decode-tool-result.ts";
import type { Failure } from "../../protocol.ts";
import { DecodeQueue } from "./decode-worker.ts";

let open: InspectedGateway | undefined;
afterEach(async () => {
  await open?.close();
  open = undefined;
});

async function start(): Promise<InspectedGateway> {
  open = await inspectGateway([query("desk.echo", () => 1)]);
  return open;
}

const members = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`key${at}`, at]));

/** Has so many values, with itself, its data and what is said about it. */
function envelopeOf(values: number): object {
  return { data: members(values - 6), meta: { source: "local", operationId: "desk.echo", timestamp: 1 } };
}

/** Has so many values, with the list that is looked at, itself and its content. */
function resultOf(values: number): string {
  return JSON.stringify({ content: [], structuredContent: members(values - 4) });
}

const STAYS = { destroyed: false };

describe("looking at results and texts", () => {
  it("lets the gateway answer others meanwhile, however many values they have", async () => {
    const inspected = await start();
    const look = (values: number) =>
      Promise.all([
        inspected.ask("formats", { body: { envelope: envelopeOf(values) } }),
        inspected.ask("decode", { body: { text: resultOf(values) } }),
      ]);
    const isFormats = (url: string) => url.includes("/src/formats/");
    // Everything that is loaded by a first look is loaded.
    await look(5);
    const looks: Response[] = [];
    const ran = await functionsRun(isFormats, async () => looks.push(...(await look(25_000))));
    expect(looks.map(({ status }) => status)).toEqual([200, 200]);
    // The thread that answers requests does none of it.
    expect(ran).toEqual([]);
    const here = await functionsRun(isFormats, async () => decodeToolResult({ content: [] }));
    expect(here).toContain("decode-tool-result.ts: decodeToolResult");
  });

  it("refuses one value more than twenty-five thousand, in their texts too", async () => {
    const inspected = await start();
    const refusal = async (path: string, body: object) => {
      const asked = await inspected.ask(path, { body });
      return [asked.status, ((await asked.json()) as Failure).error.message];
    };
    const told = [413, expect.stringMatching(/holds more than 25,000 values.*waybill decode/)];
    expect(await refusal("formats", { envelope: envelopeOf(25_001) })).toEqual(told);
    expect(await refusal("decode", { text: resultOf(25_001) })).toEqual(told);
    const text = JSON.stringify(members(60_000));
    expect(await refusal("decode", { text: JSON.stringify({ content: [{ type: "text", text }] }) })).toEqual(
      told,
    );
    expect(await refusal("decode", { text: `__ENVELOPE_V1__:${btoa(text)}` })).toEqual(told);
  });

  it("does one piece of work at a time, and goes on after one that failed", async () => {
    const queue = new DecodeQueue();
    const seen: string[] = [];
    const work = (name: string) =>
      queue.run(STAYS, async () => {
        seen.push(`${name} begins`);
        await Promise.resolve();
        seen.push(`${name} ends`);
        if (name === "a") throw new Error("No.");
        return name;
      });
    const [a, b] = [rejection(work("a")), work("b")];
    expect(await a).toEqual(new Error("No."));
    expect(await b).toBe("b");
    expect(seen).toEqual(["a begins", "a ends", "b begins", "b ends"]);
  });

  it("has thirty-two wait, and not one more", async () => {
    const queue = new DecodeQueue();
    const work = () => queue.run(STAYS, async () => 1);
    const all = Array.from({ length: 33 }, work);
    expect(await rejection(work())).toMatchObject({ code: "RESOURCE_EXHAUSTED", httpStatus: 429 });
    expect(await Promise.all(all)).toHaveLength(33);
    expect(await work()).toBe(1);
  });

  it("gives up what nobody waits for any more", async () => {
    const queue = new DecodeQueue();
    let isBegun = false;
    const left = queue.run({ destroyed: true }, async () => {
      isBegun = true;
    });
    expect(await rejection(left)).toMatchObject({ code: "ABORTED" });
    expect(isBegun).toBe(false);
  });
});
