import { describe, expect, it } from "vitest";
import { runResults as run } from "../../../test/run-results.ts";
import { envelope, text } from "../../../test/sample-results.ts";

const json = (value: unknown): string => JSON.stringify(value);
const ENVELOPE = envelope({ hits: 2 });

describe("what waybill decode takes results out of", () => {
  it("X-2 reads a stream of events, a problem and a fixture, and says what it took off", async () => {
    const rpc = json({ jsonrpc: "2.0", id: 1, result: ENVELOPE });
    const stream = await run(["decode"], `event: message\ndata: ${rpc}\n\n`);
    expect(stream.out).toMatch(/^wrapped in {2}a stream of events\nnote {8}Taken out of a stream.*\nnote/m);
    const problem = await run(
      ["decode", "--strict"],
      json({ title: "Gone", status: 410, detail: "It left." }),
    );
    expect(problem.code).toBe(1);
    expect(problem.out).toMatch(/^format {6}problem \(.*\)\noutcome {5}call error 410: Gone: It left\./);
    const error = { code: "TIMEOUT", message: "Too late.", retryable: true, details: { afterMs: 5 } };
    const failed = json({ waybill: "fixture/1", operation: "desk.find", outcome: "call_error", error });
    const fixture = await run(["decode"], failed);
    expect(fixture.out).toMatch(/call error TIMEOUT: Too late\. \(may work later\)\ndetails\n {2}\{/);
    expect(await run(["transcode", "--to", "mcp"], failed)).toMatchObject({
      code: 2,
      err: expect.stringContaining("the fixture of a call that failed"),
    });
  });

  it("X-2 says where a text contradicts the structured content", async () => {
    const given = json({ content: [text('{"hits":3}')], structuredContent: { hits: 2 } });
    expect(JSON.parse((await run(["decode", "--json"], given)).out)).toMatchObject({
      data: { hits: 2 },
      odd: [{ code: "text_contradicts_data", message: expect.stringContaining("first at /hits") }],
    });
  });

  it("X-2 lets nothing out that hides in what it takes off", async () => {
    const hostile = "\u001b]0;title\u0007\u202e\u009b31m";
    for (const given of [
      `data: ${json({ jsonrpc: "2.0", id: hostile, result: ENVELOPE })}`,
      json({ waybill: "fixture/1", operation: hostile, recordedAt: hostile, error: { message: hostile } }),
      json({ title: hostile, status: 404, [hostile]: hostile }),
      json({ content: [text(json({ [hostile]: 1 }))], structuredContent: { [hostile]: 2 } }),
    ]) {
      for (const flags of [[], ["--json"]]) {
        const { out, code } = await run(["decode", ...flags], given);
        expect(code).toBe(0);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
        expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
      }
    }
  });
});
