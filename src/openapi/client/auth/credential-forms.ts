import { isTokenText } from "./addition.ts";
import type { BasicCredential, OAuthCredential } from "./credentials.ts";

/** Tells a name and a password from the other forms of a credential. */
export function isBasicForm(value: unknown): value is BasicCredential {
  return typeof value === "object" && value !== null && "username" in value;
}

/** Tells how to get a token from the other forms of a credential. */
export function isOAuthForm(value: unknown): value is OAuthCredential {
  return typeof value === "object" && value !== null && "clientId" in value;
}

/** Says what is wrong with a token; nothing for a good one. Never shows it. */
export function tokenMisfit(token: string): string | undefined {
  if (token === "") return "must not be empty";
  if (/^bearer\s/i.test(token)) return 'must be the token alone, without "Bearer"';
  return isTokenText(token)
    ? undefined
    : "must be a token of visible ASCII characters, without spaces or line breaks";
}

/** Says what is wrong with a name and a password; nothing for good ones. Never shows them. */
export function basicMisfit({ username, password }: BasicCredential): string | undefined {
  if (typeof username !== "string" || typeof password !== "string") {
    return "must have a username and a password that are strings";
  }
  if (username.includes(":")) return 'must have a username without ":", which ends it on the wire';
  return hasControl(username) || hasControl(password)
    ? "must have a username and a password without control characters"
    : undefined;
}

/** Says what is wrong with how to get a token; nothing where all is well. Never shows a value. */
export function oauthMisfit(credential: OAuthCredential): string | undefined {
  const { clientId, clientSecret, refreshToken, clientAuth, onRefreshToken } = credential;
  if (!isText(clientId)) return "must have a clientId that is a string and not empty";
  if (!isTextOrNone(clientSecret)) return "must have a clientSecret that is a string and not empty, or none";
  if (!isTextOrNone(refreshToken)) return "must have a refreshToken that is a string and not empty, or none";
  if (clientSecret === undefined && refreshToken === undefined) {
    return "must have a clientSecret or a refreshToken";
  }
  if (clientAuth !== undefined && clientAuth !== "basic" && clientAuth !== "post") {
    return 'must have a clientAuth that is "basic" or "post"';
  }
  if (onRefreshToken !== undefined && typeof onRefreshToken !== "function") {
    return "must have an onRefreshToken that is a function";
  }
  return requestMisfit(credential);
}

/** A scope as RFC 6749 writes it; one with a space would be two. */
export function isScope(value: unknown): value is string {
  return typeof value === "string" && /^[!#-[\]-~]+$/.test(value);
}

/** Reads the address of an authorization server; nothing where it cannot be one. */
export function readAddress(address: string, base?: URL): URL | undefined {
  try {
    const url = new URL(address, base);
    url.hash = "";
    const isWeb = url.protocol === "https:" || url.protocol === "http:";
    return isWeb && url.username === "" && url.password === "" ? url : undefined;
  } catch {
    return undefined;
  }
}

function requestMisfit({ scopes, tokenUrl, parameters }: OAuthCredential): string | undefined {
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every(isScope))) {
    return "must have scopes that are a list of strings without spaces";
  }
  if (tokenUrl !== undefined && (typeof tokenUrl !== "string" || readAddress(tokenUrl) === undefined)) {
    return "must have a tokenUrl that is an http or https URL without a user name";
  }
  const isRight =
    parameters === undefined || (isRecord(parameters) && Object.values(parameters).every(isString));
  return isRight ? undefined : "must have parameters that are strings by name";
}

function hasControl(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isTextOrNone(value: unknown): boolean {
  return value === undefined || isText(value);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
