/** Bounds on what a server may send, and on how often it may ask. */
export interface McpLimits {
  /** Bytes of one message. @default 67_108_864 */
  readonly messageBytes: number;
  /** Characters of one question to a caller, written as JSON. @default 1_048_576 */
  readonly questionLength: number;
  /** Rounds of questions of one request (2026-07-28). @default 8 */
  readonly rounds: number;
  /** Questions of one round. @default 16 */
  readonly questions: number;
  /** Questions waiting for an answer at once, over all requests. @default 64 */
  readonly openQuestions: number;
}

/** The limits in force where none are given. */
export const MCP_LIMITS: McpLimits = {
  messageBytes: 67_108_864,
  questionLength: 1_048_576,
  rounds: 8,
  questions: 16,
  openQuestions: 64,
};

/** Completes the limits given; one that is no positive integer is a `TypeError`. */
export function toMcpLimits(given: Partial<McpLimits> | undefined): McpLimits {
  const limits = { ...MCP_LIMITS };
  for (const name of Object.keys(MCP_LIMITS) as (keyof McpLimits)[]) {
    const value = given?.[name];
    if (value === undefined) continue;
    if (!Number.isSafeInteger(value) || value <= 0) {
      throw new TypeError(`limits.${name} must be a positive integer; it is ${String(value)}.`);
    }
    limits[name] = value;
  }
  return limits;
}
