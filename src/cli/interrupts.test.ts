import { expect, it, vi } from "vitest";
import { listenForFaults, takeFaults } from "./interrupts.ts";

it("RE-30 gives faults to whoever takes them, and else to the command", () => {
  const before = process.listeners("uncaughtException");
  const [ended, taken] = [vi.fn(), vi.fn()];
  listenForFaults(ended);
  const [listener] = process.listeners("uncaughtException").filter((one) => !before.includes(one));
  try {
    const release = takeFaults(taken);
    listener?.(new Error("first"), "uncaughtException");
    release();
    listener?.(new Error("second"), "uncaughtException");
    expect(taken.mock.calls).toEqual([[new Error("first")]]);
    expect(ended.mock.calls).toEqual([[new Error("second")]]);
  } finally {
    if (listener !== undefined) {
      process.off("uncaughtException", listener);
      process.off("unhandledRejection", listener as unknown as NodeJS.UnhandledRejectionListener);
    }
  }
});
