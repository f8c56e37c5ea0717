// @ts-check
// The client that the conformance suite starts: imports the server behind the URL it is given and uses everything it offers.
import { OperationRegistry } from "../dist/index.js";
import { createOAuthStore, fromMcp } from "../dist/mcp.js";

/** @import { AnyOperation, CallerSide, ElicitRequest, JsonValue } from "../dist/index.js" */

const url = process.argv.at(-1) ?? "";
const scenario = process.env["MCP_CONFORMANCE_SCENARIO"] ?? "";
const context = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}");
const revision = process.env["MCP_CONFORMANCE_PROTOCOL_VERSION"] ?? "2025-11-25";

/** A person who takes every default and says yes, and a model of few words. @type {CallerSide} */
const caller = {
  elicit: async (request) => ({ action: "accept", content: fillIn(request) }),
  sample: async () => ({ role: "assistant", content: { type: "text", text: "Yes." }, model: "none" }),
};

const source = await fromMcp(url, {
  namespace: "server",
  protocol: revision < "2026" ? "2025" : "auto",
  clientInfo: { name: "waybill-conformance", version: "1.0.0" },
  reconnect: false,
  ...(scenario.startsWith("auth/") && { auth: { oauth2: await createAuth() } }),
});
try {
  const registry = new OperationRegistry();
  registry.registerAll(source);
  for (const { tool, input } of listCalls([...source.operations])) {
    const envelope = await registry.execute(`server.${tool}`, input, { caller });
    console.log(tool, JSON.stringify(envelope.data));
  }
  if (source.capabilities.resources) {
    for (const { uri } of await source.listResources()) await source.readResource(uri);
  }
  if (source.capabilities.prompts) {
    for (const { name } of await source.listPrompts()) await source.getPrompt(name, {});
  }
} finally {
  await source.close();
}

/** The calls the scenario names, or one of every tool. @param {AnyOperation[]} operations */
function listCalls(operations) {
  // The server of this scenario lists a tool and cannot be called.
  if (scenario === "json-schema-ref-no-deref") return [];
  if (Array.isArray(context.toolCalls)) {
    return context.toolCalls.map((/** @type {any} */ call) => ({
      tool: call.name,
      input: leaveOutNulls(call.arguments),
    }));
  }
  return operations.map((operation) => ({ tool: operation.name, input: makeInput(operation, operations) }));
}

/** A null is no boolean, and is refused before it is sent; what is absent says the same. @param {object} input */
function leaveOutNulls(input) {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null));
}

/** @param {AnyOperation} operation @param {AnyOperation[]} operations */
function makeInput(operation, operations) {
  const { properties = {}, required = [] } = /** @type {any} */ (operation.inputSchema ?? {});
  if (operation.name === "json_schema_echo") {
    return { schema: operations.find(({ name }) => name === "json_schema_2020_12_tool")?.inputSchema };
  }
  if (operation.name === "json_schema_2020_12_tool") return { email: "ada@example.com" };
  return Object.fromEntries(
    required.map((/** @type {string} */ name) => [name, makeValue(properties[name]?.type)]),
  );
}

/** @param {unknown} type */
function makeValue(type) {
  if (type === "number" || type === "integer") return 2;
  if (type === "boolean") return true;
  if (type === "array") return [];
  if (type === "object") return {};
  if (type === "null") return null;
  return "some-value";
}

/** What has a default is left to it. @param {ElicitRequest} request @returns {Record<string, JsonValue>} */
function fillIn(request) {
  if (request.mode === "url") return {};
  const fields = Object.entries(/** @type {any} */ (request.requestedSchema).properties ?? {});
  const open = fields.filter(([, field]) => field.default === undefined);
  return Object.fromEntries(open.map(([name, field]) => [name, makeValue(field.type)]));
}

/** The suite tells the secret of this client, and not to whom it belongs. */
async function findIssuer() {
  const { origin, pathname } = new URL(url);
  const places = [pathname, ""].map((path) => `${origin}/.well-known/oauth-protected-resource${path}`);
  for (const place of places) {
    const response = await fetch(place);
    if (response.ok) return (await response.json()).authorization_servers[0];
  }
  throw new Error("The server names no authorization server.");
}

async function createAuth() {
  const { client_id: clientId, client_secret: clientSecret, issuer } = context;
  if (scenario.startsWith("auth/client-credentials")) {
    const { private_key_pem: privateKey, signing_algorithm: signingAlgorithm } = context;
    return createOAuthStore({
      clientId,
      ...(clientSecret !== undefined && { clientSecret, issuer: issuer ?? (await findIssuer()) }),
      privateKey,
      signingAlgorithm,
    });
  }
  if (scenario === "auth/wif-jwt-bearer") {
    return createOAuthStore({ clientId, issuer: await findIssuer(), assertion: context.valid_jwt });
  }
  // A person who is logged in at the company's identity provider.
  if (context.idp_id_token !== undefined) {
    const { idp_client_id, idp_id_token: token, idp_issuer, idp_token_endpoint: tokenUrl } = context;
    return createOAuthStore({
      clientId,
      clientSecret,
      issuer: await findIssuer(),
      identity: { issuer: idp_issuer, tokenUrl, clientId: idp_client_id, token },
    });
  }
  return createOAuthStore({
    redirectUrl: "http://localhost:3000/callback",
    clientMetadataUrl: "https://conformance-test.local/client-metadata.json",
    dpop: scenario.startsWith("auth/dpop"),
    ...(clientId !== undefined && { clientId, clientSecret, issuer: issuer ?? (await findIssuer()) }),
    // The authorization server of the suite asks nobody and sends back at once.
    onAuthorize: async (address) => {
      const response = await fetch(address, { redirect: "manual" });
      return response.headers.get("location") ?? undefined;
    },
  });
}
