/** Gets, renews and widens tokens for one MCP server. */
export interface HttpAuthorizer {
  /** The access token to send, if there is one. */
  token(): Promise<string | undefined>;
  /** Gets a token that works after a 401; rejects with a `CallError`, or with a `SignInError` such as that a person must sign in first. */
  onUnauthorized(refusal: Response): Promise<void>;
  /** After a 403 with `insufficient_scope`: asks for the scopes that the refusal names. True when the request is worth another try. */
  widen(refusal: Response): Promise<boolean>;
  /** A request was served after its token was widened. */
  noteServed(): void;
}

/** Why there is no token that the server takes. */
export type SignInReason =
  /** A person has to sign in first. */
  | "consent_needed"
  /** The server does not take the token that the application gave. */
  | "token_refused"
  /** The authorization server answered with an OAuth error. */
  | "refused"
  /** The authorization server is not the one it says it is, or not the one that the client belongs to. */
  | "wrong_issuer"
  /** Tokens would travel in the clear, or be good for another server than this one. */
  | "unsafe"
  /** The authorization server cannot do what is needed, or its answer cannot be used. */
  | "unusable"
  /** The authorization server failed, and may work later. */
  | "unavailable";

/** There is no token that the server takes. Its message is in our own words and shows no secret. */
export class SignInError extends Error {
  override readonly name = "SignInError";
  readonly reason: SignInReason;
  /** What the authorization server answered with, where it is an error code of OAuth. */
  readonly oauthError: string | undefined;

  constructor(reason: SignInReason, message: string, oauthError?: string) {
    super(message);
    this.reason = reason;
    this.oauthError = oauthError;
  }
}
