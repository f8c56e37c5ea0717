import { Session } from "node:inspector/promises";

/**
 * Gives the functions of some scripts that this thread runs meanwhile, as `file: name`. What other threads of the process do is not
 * seen, so it tells which thread did a piece of work, however busy the machine is.
 */
export async function functionsRun(
  isWanted: (url: string) => boolean,
  run: () => Promise<unknown>,
): Promise<readonly string[]> {
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    await run();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    await session.post("Profiler.stopPreciseCoverage");
    return result
      .filter(({ url }) => isWanted(url))
      .flatMap(({ url, functions }) =>
        functions
          .filter(({ ranges, functionName }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0)
          .map(({ functionName }) => `${url.slice(url.lastIndexOf("/") + 1)}: ${functionName}`),
      );
  } finally {
    session.disconnect();
  }
}
