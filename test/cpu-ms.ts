/** Milliseconds of processor time this process has used: unlike a clock it does not run on while others have the processor. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
