// @ts-check

/**
 * Scored scenarios that are known to fail, as "suite revision leg scenario", and why; one that passes has to leave.
 * @type {Readonly<Record<string, string>>}
 */
export const EXPECTED = {};
