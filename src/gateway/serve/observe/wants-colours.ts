/** Says whether a stream gets colours: a terminal does, unless `NO_COLOR` or `TERM=dumb`; `FORCE_COLOR` decides otherwise. */
export function wantsColours(env: NodeJS.ProcessEnv, isTerminal: boolean): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = env;
  if (NO_COLOR !== undefined && NO_COLOR !== "") return false;
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== "") return !["0", "false"].includes(FORCE_COLOR);
  return isTerminal && TERM !== "dumb";
}
