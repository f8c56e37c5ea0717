import { CallError, isCallError, toCallError } from "../../../core/errors/errors.ts";
import type { OperationContext } from "../../../core/operation/operation-context.ts";
import { isObject } from "../../../core/schema/json-schema.ts";
import { isTokenText } from "./addition.ts";

/** A name and a password. */
export interface BasicCredential {
  readonly username: string;
  readonly password: string;
}

/** How tokens are had from an authorization server; they are kept, and renewed before they expire. */
export interface OAuthCredential {
  readonly clientId: string;
  /** Left out for a public client with a refresh token. */
  readonly clientSecret?: string | undefined;
  /** Renews tokens without a person. @default the client's own credentials are used */
  readonly refreshToken?: string | undefined;
  /** @default those the operation asks for; with a refresh token, those that it was granted */
  readonly scopes?: readonly string[] | undefined;
  /** @default what the document says */
  readonly tokenUrl?: string | undefined;
  /** How the client shows who it is. @default "basic" */
  readonly clientAuth?: "basic" | "post" | undefined;
  /** Sent along when a token is asked for, such as `{ audience }`. */
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  /** Hears of a refresh token that replaces the one before. */
  readonly onRefreshToken?: ((refreshToken: string) => void | Promise<void>) | undefined;
}

/** What a credential is for. */
export interface CredentialRequest {
  /** The scheme's name in the document. */
  readonly scheme: string;
  readonly operationId: string;
  /** Where the request goes. */
  readonly origin: string;
  readonly scopes: readonly string[];
  /** The call it is for: whose it is, and what its metadata says. */
  readonly context: OperationContext;
  /** The one given before was refused (401): a new one is wanted. */
  readonly refused: boolean;
}

/** A key or token, a name and a password, or how to get a token. */
export type CredentialValue = string | BasicCredential | OAuthCredential;

/** A credential, or what gives one for each call; nothing means that there is none for this call. */
export type Credential =
  | CredentialValue
  | ((request: CredentialRequest) => CredentialValue | undefined | Promise<CredentialValue | undefined>);

/** Credentials by the name of their scheme, or by kind: `bearer`, `basic`, `apiKey`, `oauth2`. */
export type AuthOptions = Readonly<Record<string, Credential>>;

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
    parameters === undefined || (isObject(parameters) && Object.values(parameters).every(isString));
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

/** Makes the error of a call for which no credentials could be had; whatever others said stays in `cause`. */
export function unauthenticated(message: string, cause?: unknown, retryable = false): CallError {
  return new CallError("UNAUTHENTICATED", message, {
    ...(cause === undefined ? {} : { cause }),
    retryable,
    stack: false,
  });
}

/** Turns what a credential function threw into a `CallError`. */
export function functionFailure(scheme: string, thrown: unknown): CallError {
  if (isCallError(thrown)) return toCallError(thrown);
  return unauthenticated(`The credential function of ${showScheme(scheme)} failed.`, thrown);
}

/** Names a scheme of a document; a name that is no name in OpenAPI could be any text, and is not shown. */
export function showScheme(name: string): string {
  return /^[\w.-]{1,80}$/.test(name) ? `the security scheme "${name}"` : "a security scheme with an odd name";
}

/** Names several schemes, at most ten. */
export function showNames(names: readonly string[], separator = ", "): string {
  const shown = names
    .slice(0, 10)
    .map((name) => (/^[\w.-]{1,80}$/.test(name) ? `"${name}"` : "(an odd name)"));
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : "";
  return `${shown.join(separator)}${more}`;
}
