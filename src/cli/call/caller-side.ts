import type { CallerSide, ElicitAnswer } from "../../core/operation/caller-side.ts";
import type { Io } from "../io.ts";
import { withoutProgress } from "../terminal/progress.ts";

/** Answers what servers ask while a call runs: the person at the terminal does; without one, every question is declined. */
export function createCallerSide(io: Io): CallerSide {
  const isPerson = io.stdin.isTTY === true && io.stderr.isTTY === true;
  let turn: Promise<unknown> = Promise.resolve();
  return {
    async elicit(request, signal): Promise<ElicitAnswer> {
      if (!isPerson) return { action: "decline" };
      // One question at a time.
      const asked = turn.then(async () => {
        const { askPerson } = await import("./ask-person.ts");
        return withoutProgress(() => askPerson(io, request, signal));
      });
      turn = asked.catch(() => {});
      return asked;
    },
  };
}
