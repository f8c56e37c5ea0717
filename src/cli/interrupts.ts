/** Milliseconds that a command has to end after it was interrupted, before it is ended. */
const GRACE_MS = 3_000;

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** Turns the signals of a process into an `AbortSignal`. */
export interface Interrupts {
  readonly signal: AbortSignal;
  /** The exit code that goes with what came, if anything did. */
  readonly exitCode: number | undefined;
  /** Ends the command as if it had been interrupted, with this exit code. */
  end(exitCode: number): void;
  /** Stops listening: who serves decides about signals on their own. */
  release(): void;
}

/** Listens: the first signal aborts, a second one exits at once; so does the end of a few seconds of grace. */
export function listenForInterrupts(exit: (code: number) => void): Interrupts {
  const controller = new AbortController();
  let exitCode: number | undefined;
  const end = (code: number): void => {
    if (exitCode !== undefined) return;
    exitCode = code;
    controller.abort(new DOMException("The command was interrupted.", "AbortError"));
    setTimeout(() => exit(code), GRACE_MS).unref();
  };
  const onSignal = (name: NodeJS.Signals): void => {
    const code = SIGNALS[name as keyof typeof SIGNALS];
    if (exitCode === undefined) end(code);
    else exit(code);
  };
  const names = Object.keys(SIGNALS) as NodeJS.Signals[];
  for (const name of names) process.on(name, onSignal);
  const release = (): void => {
    for (const name of names) process.off(name, onSignal);
    if (current === interrupts) current = undefined;
  };
  const interrupts: Interrupts = {
    signal: controller.signal,
    get exitCode() {
      return exitCode;
    },
    end,
    release,
  };
  current = interrupts;
  return interrupts;
}

let current: Interrupts | undefined;

/** Stops the listening of the command in this process, where there is any. */
export function releaseInterrupts(): void {
  current?.release();
}

/** What becomes of faults that nobody caught, where somebody takes them. */
let taker: ((thrown: unknown) => void) | undefined;

/**
 * Listens for what nobody in this process caught: an error thrown in a timer, a promise that was rejected and left alone. A taker gets
 * them where there is one (`takeFaults`); else `onFault` does.
 */
export function listenForFaults(onFault: (thrown: unknown) => void): void {
  const listener = (thrown: unknown): void => (taker ?? onFault)(thrown);
  process.on("uncaughtException", listener);
  process.on("unhandledRejection", listener);
}

/** Takes faults from now on: what serves others goes on when a module of theirs forgets a promise. Returns how to stop. */
export function takeFaults(take: (thrown: unknown) => void): () => void {
  taker = take;
  return () => {
    if (taker === take) taker = undefined;
  };
}
