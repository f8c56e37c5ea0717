import { onTestFinished, vi } from "vitest";

/** Stops the monotonic clock until the test is over: whatever has so many milliseconds for something has enough of them. */
export function stopClock(): void {
  const clock = vi.spyOn(performance, "now");
  clock.mockReturnValue(performance.now());
  onTestFinished(() => clock.mockRestore());
}
