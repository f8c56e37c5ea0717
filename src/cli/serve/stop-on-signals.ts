import { releaseInterrupts } from "../interrupts.ts";

const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

type StopSignal = keyof typeof CODES;

/** Waits for the first signal to stop; a second one exits at once. */
export function untilStopped(onSecond: (code: number) => void): {
  readonly stopped: Promise<StopSignal>;
  /** Stops listening. */
  release(): void;
} {
  releaseInterrupts();
  const names = Object.keys(CODES) as StopSignal[];
  let resolve: (name: StopSignal) => void = () => {};
  const stopped = new Promise<StopSignal>((done) => {
    resolve = done;
  });
  let isStopping = false;
  const listener = (name: NodeJS.Signals): void => {
    if (isStopping) onSecond(CODES[name as StopSignal]);
    isStopping = true;
    resolve(name as StopSignal);
  };
  for (const name of names) process.on(name, listener);
  return {
    stopped,
    release: () => {
      for (const name of names) process.off(name, listener);
    },
  };
}
