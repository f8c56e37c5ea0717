/** Runs what writes with `console.log`, and gives what it wrote instead. */
export function captureLog(run: () => void): string {
  const lines: string[] = [];
  const { log } = console;
  console.log = (...texts: unknown[]) => void lines.push(texts.join(" "));
  try {
    run();
  } finally {
    console.log = log;
  }
  return lines.map((line) => `${line}\n`).join("");
}
