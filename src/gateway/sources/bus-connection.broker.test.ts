import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import { expect, it, onTestFinished } from "vitest";
import { type NatsServerOptions, natsSuite, startNats } from "../../../test/nats-server.ts";
import { connectBroker, connectBus } from "./bus-connection.ts";

/** Certificate of a broker on this machine, signed by itself; for tests alone. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBlTCCATugAwIBAgIUXD56QyaqdezVZ7CpUHioZmHaFigwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExOTA1MTMyNVoYDzIxMjYxMDI2
MDUxMzI1WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARhQ7LFUzVpA0g7teRedx6M3SLrIFuYO54MN7fgTrvz4TD1F2PAubRE
mSvHBxZADkjF1C8aM4QaasHLS51ljexMo2kwZzAdBgNVHQ4EFgQUXomZEh//rkru
eLsxVvl2SSBG0tEwHwYDVR0jBBgwFoAUXomZEh//rkrueLsxVvl2SSBG0tEwDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
SAAwRQIgSNXnCYmlR8FMtJKQAGk7Di00Bx5Gj6aNLNbSDIG2mUECIQCxX2n8TSQL
QGpMk8If2VmiMoAZDd1jbRDE4eJD6gLP/w==
-----END CERTIFICATE-----`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgatGDnWpxl8Eal06j
zCY4ASDhpdl3Ap4E8Dc2RQ3h0CKhRANCAARhQ7LFUzVpA0g7teRedx6M3SLrIFuY
O54MN7fgTrvz4TD1F2PAubREmSvHBxZADkjF1C8aM4QaasHLS51ljexM
-----END PRIVATE KEY-----`;

const start = async (options: NatsServerOptions) => {
  const broker = await startNats(options);
  onTestFinished(() => broker.stop());
  return broker;
};
const signal = new AbortController().signal;
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const publicKey = (pair: nkeys.KeyPair): string => pair.getPublicKey();

/** Signs claims as the tools of NATS do. */
function sign(issuer: nkeys.KeyPair, subject: string, name: string, nats: object): string {
  const part = (value: object | Uint8Array): string =>
    Buffer.from(value instanceof Uint8Array ? value : JSON.stringify(value)).toString("base64url");
  const head = part({ typ: "JWT", alg: "ed25519-nkey" });
  const body = part({ jti: name, iat: 1_700_000_000, iss: publicKey(issuer), name, sub: subject, nats });
  const signed = `${head}.${body}`;
  return `${signed}.${part(issuer.sign(Buffer.from(signed)))}`;
}

natsSuite("the connection of a config", () => {
  it("proves who it is with an NKey, and hears replies where its user may", async () => {
    const user = nkeys.createUser();
    const permissions = `{ publish: "work.>", subscribe: "_INBOX_ada.>" }`;
    const config = `authorization { users: [{ nkey: "${publicKey(user)}", permissions: ${permissions} }] }`;
    const { url } = await start({ config });
    const nkey = `${text(user.getSeed())}\n`;
    const connection = await connectBroker({ nats: url, nkey, inboxPrefix: "_INBOX_ada" }, signal);
    await expect(connection.request("work.now", "", { timeout: 2_000 })).rejects.toThrow(/no responders/);
    await connection.close();
    const bus = await connectBus({ nats: url, nkey, inboxPrefix: "_INBOX_ada" }, signal);
    await bus.close();
    const other = text(nkeys.createUser().getSeed());
    await expect(connectBroker({ nats: url, nkey: other }, signal)).rejects.toThrow(
      "it refused the credentials; set user and password, token, credentials or nkey",
    );
  });

  it("proves who it is with a credentials file", async () => {
    const [operator, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createUser()];
    const limits = { subs: -1, data: -1, payload: -1 };
    const operatorToken = sign(operator, publicKey(operator), "operator", { type: "operator", version: 2 });
    const wide = { ...limits, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
    const accountClaims = { type: "account", version: 2, limits: wide };
    const accountToken = sign(operator, publicKey(account), "account", accountClaims);
    const userToken = sign(account, publicKey(user), "user", { type: "user", version: 2, ...limits });
    const config = [
      `operator: ${operatorToken}`,
      "resolver: MEMORY",
      `resolver_preload: { ${publicKey(account)}: ${accountToken} }`,
    ].join("\n");
    const { url } = await start({ config });
    const credentials = [
      `-----BEGIN NATS USER JWT-----\n${userToken}\n------END NATS USER JWT------`,
      `-----BEGIN USER NKEY SEED-----\n${text(user.getSeed())}\n------END USER NKEY SEED------`,
    ].join("\n\n");
    const connection = await connectBroker({ nats: url, credentials }, signal);
    await connection.flush();
    await connection.close();
    await expect(connectBroker({ nats: url }, signal)).rejects.toThrow("it refused the credentials");
  });

  it("trusts a broker by the certificate of who issued its own, and shows one of ours", async () => {
    const folder = mkdtempSync(join(tmpdir(), "waybill-tls-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    writeFileSync(certFile, CERTIFICATE);
    writeFileSync(keyFile, KEY);
    const files = `cert_file: "${certFile}", key_file: "${keyFile}", ca_file: "${certFile}"`;
    const { port } = await start({ config: `tls { ${files}, verify: true }` });
    const url = `nats://localhost:${port}`;
    const tls = { ca: CERTIFICATE, cert: CERTIFICATE, key: KEY };
    const connection = await connectBroker({ nats: url, tls }, signal);
    await connection.flush();
    await connection.close();
    await expect(connectBroker({ nats: url, tls: { cert: CERTIFICATE, key: KEY } }, signal)).rejects.toThrow(
      "its certificate is not trusted; set tls.ca",
    );
    await expect(connectBroker({ nats: url, tls: { ca: CERTIFICATE } }, signal)).rejects.toThrow(
      "cannot be reached",
    );
  });
});
