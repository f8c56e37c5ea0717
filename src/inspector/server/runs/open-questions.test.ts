import { describe, expect, it } from "vitest";
import type { ElicitAnswer } from "../../../core/operation/caller-side.ts";
import { OpenQuestions } from "./run-operation.ts";

const FORM = { message: "Who?", requestedSchema: { type: "object", properties: {} } } as const;

describe("open questions", () => {
  it("are twenty of one call at most; one more is declined, and other calls go on asking", async () => {
    const questions = new OpenQuestions();
    const keys: string[] = [];
    const answers: ElicitAnswer[] = [];
    const ask = async (requestId: string): Promise<void> => {
      const { signal } = new AbortController();
      const tell = (key: string): void => void keys.push(key);
      answers.push(await questions.ask(FORM, { requestId, caller: undefined, signal, tell }));
    };
    const asked = Array.from({ length: 20 }, () => ask("one"));
    expect([keys.length, answers.length]).toEqual([20, 0]);
    await ask("one");
    expect([keys.length, answers]).toEqual([20, [{ action: "decline" }]]);
    const other = ask("two");
    expect(keys).toHaveLength(21);
    questions.answer({ requestId: "one", key: keys[0] ?? "", action: "cancel" }, undefined);
    await asked[0];
    const again = ask("one");
    expect(keys).toHaveLength(22);
    questions.leave("one");
    questions.leave("two");
    await Promise.all([...asked, other, again]);
    expect(answers).toHaveLength(23);
  });
});
