import type { ServerResponse } from "node:http";

/** Cuts a client off that has not taken the rest of its answer in time: what waits for it is held in memory. */
export function limitTime(response: ServerResponse, timeoutMs: number): void {
  if (response.destroyed || response.writableFinished) return;
  const timer = setTimeout(() => response.destroy(), timeoutMs).unref();
  response.once("close", () => clearTimeout(timer));
}
