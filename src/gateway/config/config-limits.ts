/** Bounds of a config; more is a mistake. */
export const CONFIG_LIMITS = {
  /** Bytes of the file. */
  bytes: 4_194_304,
  /** Nested objects and lists. */
  depth: 64,
  /** MCP servers and HTTP APIs in all. */
  sources: 1_000,
  /** Bytes of a file that is referred to. */
  referencedBytes: 65_536,
  /** Mistakes that are listed. */
  issues: 20,
} as const;

/** The fewest characters of a token that callers show. */
export const LEAST_TOKEN_CHARACTERS = 16;

/** The fewest characters of a secret that tokens are signed with. */
export const LEAST_SECRET_CHARACTERS = 32;
