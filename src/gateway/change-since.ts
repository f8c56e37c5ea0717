import { stat } from "node:fs/promises";

/** By how much, in milliseconds, the time of a change may lie before the moment it was made: file systems keep coarse clocks. */
const CLOCK_MS = 20;

/** When a file was changed or put in its place, if that was after a moment; both in milliseconds since 1970. */
export async function changeSince(path: string, moment: number): Promise<number | undefined> {
  try {
    const { ctimeMs } = await stat(path);
    return ctimeMs >= moment - CLOCK_MS ? ctimeMs : undefined;
  } catch {
    // It is gone, or nobody may look: whoever reads it says so.
    return undefined;
  }
}
