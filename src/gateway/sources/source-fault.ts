/** A source that cannot work as it is configured: it is not tried again by itself. */
export class SourceFault extends Error {
  override readonly name = "SourceFault";
}

/** Runs what checks or makes something from a config: what cannot work as it is configured is no better the next time. */
export function asFault<T>(make: () => T): T {
  try {
    return make();
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw new SourceFault(thrown.message, { cause: thrown });
  }
}
