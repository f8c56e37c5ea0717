import { toPlainLine } from "./plain-line.ts";

/** Makes a function of the application safe to call: what it throws is told on the console, the first time. */
export function guardCallback<Args extends readonly unknown[]>(
  name: string,
  callback: (...args: Args) => void,
): (...args: Args) => void {
  let warned = false;
  const warn = (thrown: unknown): void => {
    if (warned) return;
    warned = true;
    const said = toPlainLine(thrown instanceof Error ? thrown.message : undefined, 300);
    console.warn(`[waybill] ${name} threw, which is told once${said === "" ? "." : `: ${said}`}`);
  };
  return (...args) => {
    try {
      // One that was declared async by mistake fails later.
      const returned: unknown = callback(...args);
      if (returned instanceof Promise) returned.catch(warn);
    } catch (thrown) {
      warn(thrown);
    }
  };
}
