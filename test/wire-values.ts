import { CallError } from "../src/index.ts";

/** The `CallError` that something throws. */
export function callErrorOf(run: () => unknown): CallError {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof CallError) return thrown;
    throw thrown;
  }
  throw new Error("nothing was refused");
}

/** A value so many levels deep, each made by `wrap` from the one inside it. */
export function nest(levels: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 0;
  for (let i = 0; i < levels; i++) value = wrap(value);
  return value;
}
