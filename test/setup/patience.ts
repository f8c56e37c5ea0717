import { vi } from "vitest";

const PATIENT = Symbol.for("waybill.test.patience");
const functions = vi as typeof vi & { [PATIENT]?: true };

// Waiting ends when the condition holds; the limit only ends what hangs. Vitest's own, a second, is too little on a busy machine.
if (functions[PATIENT] !== true) {
  functions[PATIENT] = true;
  const { waitFor } = vi;
  functions.waitFor = (callback, options) =>
    waitFor(callback, typeof options === "number" ? options : { timeout: 30_000, ...options });
}
