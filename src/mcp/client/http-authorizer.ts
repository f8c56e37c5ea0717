/** Gets, renews and widens tokens for one MCP server. */
export interface HttpAuthorizer {
  /** The access token to send, if there is one. */
  token(): Promise<string | undefined>;
  /** Gets a token that works after a 401; rejects with a `CallError` or the error that says a person must sign in first. */
  onUnauthorized(refusal: Response): Promise<void>;
  /** After a 403 with `insufficient_scope`: asks for the scopes that the refusal names. True when the request is worth another try. */
  widen(refusal: Response): Promise<boolean>;
  /** A request was served after its token was widened. */
  noteServed(): void;
}
