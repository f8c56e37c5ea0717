import { type AnyOperation, defineOperation, type OperationSpec, type OperationType } from "../src/index.ts";

type Handler = OperationSpec["handler"];
type Extra = Partial<Omit<OperationSpec, "handler" | "type">>;

/** Makes a query out of an id and a handler, and whatever else a test is about. */
export function query(id: string, handler: Handler, extra: Extra = {}): AnyOperation {
  return make("query", id, handler, extra);
}

/** Makes a subscription in the same way. */
export function stream(id: string, handler: Handler, extra: Extra = {}): AnyOperation {
  return make("subscription", id, handler, extra);
}

function make(type: OperationType, id: string, handler: Handler, extra: Extra): AnyOperation {
  const dot = id.indexOf(".");
  const [namespace, name] = [id.slice(0, dot), id.slice(dot + 1)];
  return defineOperation({ namespace, name, version: "1.0.0", type, description: "", ...extra, handler });
}

/** Waits some milliseconds. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A promise that a test settles itself, at the moment that it is about. */
export function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Waits until something holds; fails where it never does. */
export async function until(holds: () => boolean): Promise<void> {
  const end = performance.now() + 25_000;
  while (!holds()) {
    if (performance.now() > end) throw new Error("It never came to be.");
    await sleep(2);
  }
}

/** What a promise rejects with; fails when it does not. */
export async function rejection(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (thrown) {
    return thrown;
  }
  throw new Error("The promise was expected to reject, and did not.");
}

/** Collects an iterable that ends. */
export async function collect<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of iterable) found.push(value);
  return found;
}
