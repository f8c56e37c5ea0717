/**
 * A real authorization server (oidc-provider) on loopback, asked by messages of its parent. A process of its own, without hardening flags:
 * a package below it (depd) makes code from strings as it loads, so that it cannot run in a hardened process.
 */
import { createServer } from "node:http";
import Provider from "oidc-provider";

const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

/** A client that stands for itself. */
const machine = (client_id, extra) => ({
  client_id,
  client_secret: `secret-of-${client_id}/+=: %`,
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: [],
  ...extra,
});

const provider = new Provider(issuer, {
  clients: [
    machine("machine.one-1"),
    machine("posting", { token_endpoint_auth_method: "client_secret_post" }),
    {
      client_id: "app",
      client_secret: "secret-of-app",
      grant_types: ["authorization_code", "refresh_token"],
      redirect_uris: ["http://127.0.0.1/back"],
    },
  ],
  scopes: ["openid", "offline_access", "read", "write"],
  features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  rotateRefreshToken: true,
  ttl: { AccessToken: 600, ClientCredentials: 600, RefreshToken: 3600, Grant: 3600, IdToken: 600 },
});
const counts = { success: 0, error: 0 };
provider.on("grant.success", () => counts.success++);
provider.on("grant.error", () => counts.error++);
server.on("request", provider.callback());

/** Makes a refresh token as if a person had agreed. */
async function grantRefreshToken() {
  const client = await provider.Client.find("app");
  const grant = new provider.Grant({ accountId: "ann", clientId: "app" });
  grant.addOIDCScope("openid offline_access read");
  const grantId = await grant.save();
  const scope = "openid offline_access read";
  const token = new provider.RefreshToken({
    accountId: "ann",
    client,
    grantId,
    scope,
    gty: "authorization_code",
  });
  return token.save();
}

/** What a token is good for, and whose it is. */
async function look(token) {
  const found = (await provider.AccessToken.find(token)) ?? (await provider.ClientCredentials.find(token));
  return found === undefined
    ? null
    : { client: found.clientId, account: found.accountId, scope: found.scope };
}

const answers = { counts: () => counts, grant: grantRefreshToken, look };

process.on("message", async ({ id, ask, value }) => {
  process.send({ id, answer: await answers[ask](value) });
});
process.on("disconnect", () => process.exit(0));
process.send({ issuer });
