import { onTestFinished } from "vitest";

/** Gives the modules that a test writes and loads something of the test, until it is over. */
export function setGlobal(name: string, value: unknown): void {
  Reflect.set(globalThis, name, value);
  onTestFinished(() => {
    Reflect.deleteProperty(globalThis, name);
  });
}
