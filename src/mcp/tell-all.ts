/** Tells every listener of an event; the trouble of one is not that of another. */
export function tellAll<E>(listeners: Iterable<(event: E) => void>, event: E): void {
  for (const listener of [...listeners]) {
    try {
      listener(event);
    } catch {
      // Whoever listens has to look after itself.
    }
  }
}
