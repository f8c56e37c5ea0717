import { randomBytes } from "node:crypto";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";

/** What the token of the person who started the command is called among those of a config; calls are told under their own name. */
export const OWNER_TOKEN = "whoever runs waybill inspect";

/** Makes a token of 256 bits. */
export function createOwnerToken(): string {
  return randomBytes(32).toString("base64url");
}

/** The config with one more token, which no text shows; those it has keep working. */
export function withOwnerToken(loaded: LoadedConfig, token: string): LoadedConfig {
  loaded.secrets.add(token);
  const { serve = {} } = loaded.config;
  const tokens = { ...serve.auth?.tokens, [OWNER_TOKEN]: { token } };
  const config = { ...loaded.config, serve: { ...serve, auth: { ...serve.auth, tokens } } };
  return { ...loaded, config };
}
