import { describe, expect, it } from "vitest";
import { collect, rejection } from "../../../test/make-operation.ts";
import { localEnvelope, toolError, withFacts } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { CursoredValue } from "../../core/operation/with-cursor.ts";
import { SourceSecrets } from "../../core/secrets/source-secrets.ts";
import { encodeEnvelope } from "../../core/wire/wire.ts";
import { type StreamRun, ToolStream } from "./stream-tool.ts";

const progress = (data: unknown) => ({
  progress: 1,
  _meta: { "dev.waybill/yield": encodeEnvelope(localEnvelope(data, "a.b")) },
});

describe("ToolStream", () => {
  it("RE-28 starts when first asked, gives all values, and ends with the call", async () => {
    let runs = 0;
    const run: StreamRun["run"] = async (onProgress) => {
      runs += 1;
      onProgress({ progress: 1, message: "about something else" });
      onProgress(progress(1));
      onProgress(progress(undefined));
    };
    const stream = new ToolStream({ limit: 10, run });
    expect(runs).toBe(0);
    expect(await collect(stream)).toMatchObject([
      { data: 1, meta: { source: "mcp", isError: false } },
      { data: undefined },
    ]);
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect(runs).toBe(1);
  });

  it("RE-28 keeps cursors and tool errors", async () => {
    const cursored = encodeEnvelope(withFacts(localEnvelope(1, "a.b"), { cursor: "c", sequence: 7 }));
    const failed = encodeEnvelope(toolError({ no: 1 }, { code: "X", operationId: "a.b" }));
    const run: StreamRun["run"] = async (onProgress) => {
      for (const text of [cursored, failed]) onProgress({ _meta: { "dev.waybill/yield": text } });
    };
    const [first, second] = await collect(new ToolStream({ limit: 10, run }));
    expect(first).toBeInstanceOf(CursoredValue);
    expect(first).toMatchObject({ cursor: "c", value: { data: 1 } });
    expect(second).toMatchObject({ data: { no: 1 }, meta: { isError: true, waybill: { code: "X" } } });
  });

  it("X-11 masks cursors as it masks values", async () => {
    const secrets = new SourceSecrets(undefined, { secrets: ["canary-4f1c9e27ab53d860"] });
    const given = withFacts(localEnvelope("canary-4f1c9e27ab53d860", "a.b"), {
      cursor: "1-canary-4f1c9e27ab53d860",
    });
    const run: StreamRun["run"] = async (onProgress) =>
      onProgress({ _meta: { "dev.waybill/yield": encodeEnvelope(given) } });
    const mask: StreamRun["mask"] = (envelope) => secrets.maskEnvelope(envelope);
    const [value] = await collect(new ToolStream({ limit: 10, run, mask }));
    expect(value).toMatchObject({ cursor: "1-***", value: { data: "***" } });
  });

  it("RE-28 gives what came before an error, then the error, once", async () => {
    const run: StreamRun["run"] = async (onProgress) => {
      onProgress(progress(1));
      throw new CallError("CONFLICT");
    };
    const stream = new ToolStream({ limit: 10, run });
    expect(await stream.next()).toMatchObject({ value: { data: 1 } });
    expect(await rejection(stream.next())).toMatchObject({ code: "CONFLICT" });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
  });

  it("Mcp: lets as many values wait as allowed, and ends with one more", async () => {
    const flood =
      (count: number): StreamRun["run"] =>
      async (onProgress, signal) => {
        for (let i = 0; i < count; i++) onProgress(progress(i));
        expect(signal.aborted).toBe(count > 3);
      };
    expect(await collect(new ToolStream({ limit: 3, run: flood(3) }))).toHaveLength(3);
    expect(await rejection(collect(new ToolStream({ limit: 3, run: flood(4) })))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
    });
  });

  it.each([7, "{", "{}", '{"data":1,"meta":{"source":"local"}}'])(
    "Mcp: a value that is no envelope ends it: %j",
    async (text) => {
      const run: StreamRun["run"] = async (onProgress) =>
        onProgress({ _meta: { "dev.waybill/yield": text } });
      expect(await rejection(collect(new ToolStream({ limit: 3, run })))).toMatchObject({
        code: "OUTPUT_INVALID",
      });
    },
  );

  it("RE-28 leaving it cancels the call, and so does the signal from outside", async () => {
    const aborted: string[] = [];
    const forever =
      (name: string): StreamRun["run"] =>
      (onProgress, signal) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            aborted.push(name);
            reject(new CallError("ABORTED"));
          });
          onProgress(progress(1));
        });
    for await (const _ of new ToolStream({ limit: 3, run: forever("left") })) break;
    const controller = new AbortController();
    const stream = new ToolStream({ limit: 3, signal: controller.signal, run: forever("stopped") });
    await stream.next();
    const step = stream.next();
    controller.abort();
    expect(await rejection(step)).toMatchObject({ code: "ABORTED" });
    expect(aborted).toEqual(["left", "stopped"]);
  });
});
