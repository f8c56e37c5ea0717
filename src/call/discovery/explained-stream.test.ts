import { describe, expect, it } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import { localEnvelope, type ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { ExplainedStream, FailedStream } from "../remote-registry.ts";

const DONE = { done: true, value: undefined };

describe("FailedStream", () => {
  it("RE-21 fails once, when first asked for a value, and is over then", async () => {
    const error = new Error("why");
    const failed = new FailedStream(error);
    expect(await rejection(failed.next())).toBe(error);
    expect(await failed.next()).toEqual(DONE);
  });

  it("RE-21 does not fail for who never asks", async () => {
    const failed = new FailedStream(new Error("why"));
    expect(await failed.return()).toEqual(DONE);
    expect(await failed.next()).toEqual(DONE);
  });
});

describe("ExplainedStream", () => {
  async function* yields(): AsyncGenerator<ResponseEnvelope, undefined> {
    yield localEnvelope(1, "a.x");
    throw "raw";
  }

  it("RE-21 passes values on, and puts errors in other words", async () => {
    const explained = new ExplainedStream(yields(), (thrown) => new Error(`explained ${thrown}`));
    expect(await explained.next()).toMatchObject({ done: false, value: { data: 1 } });
    expect(await rejection(explained.next())).toEqual(new Error("explained raw"));
    expect(await explained.next()).toEqual(DONE);
  });

  it("RE-21 can be left while a value is waited for", async () => {
    let end = (_: IteratorReturnResult<undefined>) => {};
    const waiting: AsyncIterableIterator<ResponseEnvelope, undefined> = {
      next: () =>
        new Promise((resolve) => {
          end = resolve;
        }),
      return: async () => {
        end({ done: true, value: undefined });
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]: () => waiting,
    };
    const explained = new ExplainedStream(waiting, (thrown) => thrown);
    const step = explained.next();
    expect(await explained.return()).toEqual(DONE);
    expect(await step).toEqual(DONE);
  });
});
