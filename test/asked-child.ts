import { fork } from "node:child_process";
import { once } from "node:events";

/** A process of its own that answers questions by name. */
export interface AskedChild<First> {
  /** What it said once it was there. */
  readonly first: First;
  ask<T>(name: string, value?: unknown): Promise<T>;
  close(): Promise<void>;
}

/** Starts a script, also in a hardened run without the flags, which what it needs cannot bear. */
export async function startAskedChild<First>(path: string): Promise<AskedChild<First>> {
  const child = fork(path, { execArgv: [], stdio: ["ignore", "ignore", "ignore", "ipc"] });
  const [first] = (await once(child, "message")) as [First];
  const waiting = new Map<number, (answer: unknown) => void>();
  child.on("message", ({ id, answer }: { id: number; answer: unknown }) => {
    waiting.get(id)?.(answer);
    waiting.delete(id);
  });
  let asked = 0;
  return {
    first,
    ask: (name, value) =>
      new Promise((resolve) => {
        const id = asked++;
        waiting.set(id, (answer) => resolve(answer as never));
        child.send({ id, ask: name, value });
      }),
    close: async () => {
      const ended = once(child, "exit");
      child.disconnect();
      await ended;
    },
  };
}
