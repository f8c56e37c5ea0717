import type { OperationContext } from "../../../core/operation/operation-context.ts";

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
