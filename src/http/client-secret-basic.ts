/**
 * Writes the `Authorization` of an OAuth client with a secret, encoded as forms are (RFC 6749, 2.3.1). `oauth4webapi` also escapes
 * `-`, `_` and `.`, which servers that do not decode take for another name.
 */
export function clientSecretBasic(clientId: string, clientSecret: string): string {
  return `Basic ${btoa(`${formEncode(clientId)}:${formEncode(clientSecret)}`)}`;
}

function formEncode(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}
