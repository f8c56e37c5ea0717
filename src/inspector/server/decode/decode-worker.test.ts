import { afterEach, describe, expect, it } from "vitest";
import { rejection, until } from "../../../../test/make-operation.ts";
import type { DecodeAnswer } from "../../protocol.ts";
import type { DecodeJob } from "./decode-results.ts";
import { DecodeWorker, type DecodeWorkerOptions } from "./decode-worker.ts";

let open: DecodeWorker | undefined;
afterEach(async () => await open?.close());

function start(options?: DecodeWorkerOptions): DecodeWorker {
  open = new DecodeWorker({ timeoutMs: 60_000, ...options });
  return open;
}

function jobOf(kind: DecodeJob["kind"], posted: unknown, secrets: readonly string[] = []): DecodeJob {
  return { kind, posted: new TextEncoder().encode(JSON.stringify(posted)), secrets };
}

const decoding = (said: string) =>
  jobOf("decode", { text: JSON.stringify({ content: [{ type: "text", text: said }] }) }, [
    "very-secret-word",
  ]);

const meta = { source: "local", operationId: "desk.echo", timestamp: 1 };
const members = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]));
/** Takes a tenth of a second at the least. */
const LONG = jobOf("formats", { envelope: { data: members(24_000), meta } });

async function textsOf(thread: DecodeWorker, ask: DecodeJob): Promise<readonly string[]> {
  const answer = JSON.parse(new TextDecoder().decode(await thread.run(ask))) as DecodeAnswer;
  return answer.results.map(({ text }) => text);
}

describe("the thread that looks at results and texts", () => {
  it("starts with the first one, answers without secrets, and leaves what it was given alone", async () => {
    const thread = start();
    expect(thread.isRunning).toBe(false);
    const ask = decoding("It is very-secret-word.");
    expect(await textsOf(thread, ask)).toEqual(["It is ***."]);
    expect(await textsOf(thread, ask)).toEqual(["It is ***."]);
    expect(thread.isRunning).toBe(true);
  });

  it("answers what cannot be read as it would be answered here", async () => {
    const thread = start();
    const refusalOf = (ask: DecodeJob) => rejection(thread.run(ask));
    expect(await refusalOf(jobOf("decode", { text: "{" }))).toMatchObject({
      code: "VALIDATION_ERROR",
      httpStatus: 400,
      message: expect.stringContaining("The text is not JSON"),
    });
    expect(await refusalOf(jobOf("decode", { text: 1 }))).toMatchObject({
      message: '"text" must be a text.',
    });
    expect(await refusalOf(jobOf("decode", []))).toMatchObject({ httpStatus: 400 });
    expect(await refusalOf(jobOf("formats", { envelope: {} }))).toMatchObject({ httpStatus: 400 });
    expect(await refusalOf({ kind: "decode", posted: new Uint8Array([0xff]), secrets: [] })).toMatchObject({
      message: "The request is not UTF-8.",
    });
  });

  it("ends when there is nothing to do, and starts again", async () => {
    const thread = start({ idleMs: 20 });
    expect(await textsOf(thread, decoding("a"))).toEqual(["a"]);
    await until(() => !thread.isRunning);
    expect(await textsOf(thread, decoding("b"))).toEqual(["b"]);
  });

  it("is ended when one job takes too long, says so, and does the next", async () => {
    const thread = start({ timeoutMs: 60_000 });
    expect(await textsOf(thread, decoding("a"))).toEqual(["a"]);
    await thread.close();
    const hurried = start({ timeoutMs: 1 });
    expect(await rejection(hurried.run(LONG))).toMatchObject({
      code: "TIMEOUT",
      message: expect.stringMatching(/longer than 1 milliseconds.*waybill decode/),
    });
    expect(hurried.isRunning).toBe(false);
  });

  it("is ended when one job takes too much memory, says so, and does the next", async () => {
    const thread = start({ memoryMb: 24 });
    const pad = "x".repeat(30);
    const padded = Array.from({ length: 24_900 }, (_, at) => [`${at}${pad}`, `${at}${pad}`]);
    const huge = jobOf("formats", { envelope: { data: Object.fromEntries(padded), meta } });
    expect(await textsOf(thread, decoding("a"))).toEqual(["a"]);
    expect(await rejection(thread.run(huge))).toMatchObject({
      code: "TOO_LARGE",
      message: expect.stringContaining("more memory"),
    });
    expect(await textsOf(thread, decoding("b"))).toEqual(["b"]);
  });

  it("gives up what it does when it is closed, and takes nothing more", async () => {
    const thread = start();
    await textsOf(thread, decoding("a"));
    const left = rejection(thread.run(LONG));
    await thread.close();
    expect(await left).toMatchObject({ code: "UNAVAILABLE" });
    expect(await rejection(thread.run(LONG))).toMatchObject({ code: "UNAVAILABLE" });
    expect(thread.isRunning).toBe(false);
  });
});
