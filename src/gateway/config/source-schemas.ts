import {
  anyText,
  type ConfigSchema,
  choice,
  definition,
  either,
  fields,
  flag,
  list,
  map,
  text,
  texts,
  whole,
} from "./config-schema-parts.ts";
import type {
  AssertionConfig,
  BusConfig,
  BusTlsConfig,
  IdentityMode,
  LoginConfig,
  McpServerConfig,
  OpenApiConfig,
  OpenApiCredential,
  SourceIdentityConfig,
} from "./gateway-config.ts";
import { SOURCE_POLICY } from "./policy-schema.ts";

type Oauth = NonNullable<McpServerConfig["oauth"]>;
type Login = Extract<OpenApiCredential, { readonly username: string }>;
type Client = Exclude<Extract<OpenApiCredential, { readonly clientId: string }>, { readonly login: true }>;

const CLIENT_OF_LOGIN = {
  clientId: text("The name of the client. Default: registered, where a person logs in."),
  clientSecret: text("Its secret; best a reference."),
  issuer: text(
    "The authorization server that knows the client; needed with a secret, which no other is shown.",
  ),
  clientMetadataUrl: text(
    "An https address that describes the client: its id where the authorization server reads such. Default: none.",
  ),
  redirectUrl: text(
    "Where the browser comes back to after a login, on this machine. Default: a free port of 127.0.0.1.",
  ),
} satisfies Record<Exclude<keyof LoginConfig, "login">, ConfigSchema>;

const OAUTH = {
  login: flag("A person logs in, with waybill login. Default: false."),
  ...CLIENT_OF_LOGIN,
  scope: text("What to ask for, with spaces between. Default: what the server asks for."),
} satisfies Record<keyof Oauth, ConfigSchema>;

const MODES = ["shared", "caller", "key", "exchange", "forward"] as const satisfies readonly IdentityMode[];

const IDENTITY = either(
  "As whom the source is asked: as one for all, as each caller by a login or a key of their own, by a token exchanged for theirs, or by their token. Default: shared.",
  { enum: [...MODES] },
  fields(
    "The same, and what it takes.",
    {
      mode: choice("As whom the source is asked.", [...MODES]),
      audience: text("Whom the token is for; needed for forward, asked for by exchange. Default: none."),
      scope: text("What an exchange asks for. Default: what the authorization server gives."),
      issuer: text("The authorization server that exchanges tokens; needed for exchange."),
      clientId: text("The client that exchanges tokens; needed for exchange."),
      clientSecret: text("Its secret; best a reference."),
      assertion: fields(
        "The authorization server of the source, which takes an assertion of the caller's identity. Default: the issuer gives the token itself.",
        {
          issuer: text("The authorization server."),
          clientId: text("The client that brings assertions."),
          clientSecret: text("Its secret; best a reference."),
        } satisfies Record<keyof AssertionConfig, ConfigSchema>,
        ["issuer", "clientId"],
      ),
      header: text("Of an MCP server: the header of a caller's key. Default: Authorization: Bearer."),
      scheme: text("Of an API: the credential that a key or token serves. Default: bearer."),
      connections: whole("Of an MCP server: callers that are connected at a time. Default: 100.", 1),
      idleMs: whole(
        "Of an MCP server: milliseconds until an idle caller's connection is closed. Default: 300000.",
        1,
      ),
    } satisfies Record<keyof SourceIdentityConfig, ConfigSchema>,
    ["mode"],
  ),
);

const MCP_SERVER = {
  type: choice("How the server is spoken to. Default: as command or url say.", [
    "stdio",
    "http",
    "streamable-http",
    "sse",
  ]),
  command: text("The program to start."),
  args: list("Its arguments. Default: none.", anyText("An argument.")),
  env: map("Environment variables of the process; best references. Default: none.", anyText("The value.")),
  cwd: text("The folder it runs in, beside the config. Default: the folder of the config."),
  inheritEnv: either(
    "Further variables of this process that the child gets, or all of them. Default: none.",
    { type: "array", items: { type: "string", minLength: 1 } },
    { enum: ["all"] },
  ),
  url: text("The address of the server."),
  headers: map("Headers of every request; best references. Default: none.", anyText("The value.")),
  bearer: text("A token for Authorization: Bearer; best a reference. Default: none."),
  oauth: fields(
    "The gateway's own credentials at the server's authorization server (client credentials), or with login, how a person logs in. Default: none; a person may log in where nothing else is given.",
    OAUTH,
  ),
  identity: IDENTITY,
  allowHttp: flag("Allows plain http to hosts other than this machine. Default: false."),
  disabled: flag("Leaves the server out. Default: false."),
  protocol: choice("The revision of MCP to speak. Default: auto.", ["auto", "2025", "2026"]),
  connectTimeoutMs: whole("Milliseconds to connect, starting the process included. Default: 30000.", 1),
  recoverJson: flag("Takes a single text block that is JSON for the data. Default: false."),
  keepIds: flag("Keeps ids that Waybill serves: only for gateways you trust to name them. Default: false."),
  instructions: flag("Passes on what the server tells models about itself. Default: true."),
  lock: flag("Refuses tools that are not as approved in the lock file. Default: lock of the gateway."),
  said: flag("Passes on what the source said when it failed, in details.said. Default: true."),
  maskResults: flag(
    "Masks the credentials of the source, from 16 characters on, in its results too. Default: true.",
  ),
  policy: SOURCE_POLICY,
} satisfies Record<keyof McpServerConfig, ConfigSchema>;

/** How other hosts spell `url`. */
export const URL_SPELLINGS = ["serverUrl", "httpUrl"] as const;

const LOGIN = {
  username: text("The name."),
  password: anyText("The password; best a reference."),
} satisfies Record<keyof Login, ConfigSchema>;

const CLIENT = {
  clientId: text("The name of the client."),
  clientSecret: text("Its secret; best a reference."),
  refreshToken: text("A token that others are had for; best a reference."),
  tokenUrl: text("Where tokens are had. Default: as the document says."),
  scopes: list("What to ask for. Default: what each operation needs.", text("A scope.")),
} satisfies Record<keyof Client, ConfigSchema>;

const PERSON = {
  login: flag("A person logs in, with waybill login. Default: false."),
  ...CLIENT_OF_LOGIN,
  scopes: list("What to ask for. Default: what the API says.", text("A scope.")),
} satisfies Record<keyof LoginConfig | "scopes", ConfigSchema>;

const OVERLAY = fields("Corrections of the document.", {
  document: { description: "Merged into the document (RFC 7396).", type: "object" },
  operations: map("By operationId, or method and path such as GET /pets/{id}.", { type: "object" }),
});

const OPENAPI = {
  document: text("The OpenAPI document: a path beside the config, or an address."),
  baseUrl: text("Where the API is, in place of what the document says."),
  server: either(
    "Which of the document's servers is used, by number or by address. Default: the first.",
    { type: "integer", minimum: 0 },
    { type: "string", minLength: 1 },
  ),
  serverVariables: map(
    "Values for the variables of the server's address. Default: as the document says.",
    anyText("The value."),
  ),
  auth: map(
    "Credentials by the name of the scheme, or by kind: bearer, basic, apiKey, oauth2. Default: none.",
    definition("credential", "A credential; best made of references."),
  ),
  identity: IDENTITY,
  authOrigins: list("Further origins that credentials are sent to. Default: none.", text("An origin.")),
  headers: map("Headers of every request; best references. Default: none.", anyText("The value.")),
  allowPrivate: either(
    'Hosts whose addresses may be private: "host:port", "host" for ports 80 and 443, "host:*" for every port; or true for all. Default: only those the config names.',
    { type: "array", items: { type: "string", minLength: 1 } },
    { type: "boolean" },
  ),
  overlay: either("Corrections of the document, merged in order. Default: none.", OVERLAY, {
    type: "array",
    items: OVERLAY,
  }),
  trace: flag("Sends trace context on. Default: false."),
  keepIds: flag("Keeps ids that Waybill serves: only for gateways you trust to name them. Default: false."),
  said: flag("Passes on what the source said when it failed, in details.said. Default: true."),
  maskResults: flag(
    "Masks the credentials of the source, from 16 characters on, in its results too. Default: true.",
  ),
  disabled: flag("Leaves the API out. Default: false."),
  policy: SOURCE_POLICY,
} satisfies Record<keyof OpenApiConfig, ConfigSchema>;

const BUS_TLS = {
  ca: text("Who issues certificates of brokers. Default: those Node trusts."),
  cert: text("The certificate that is shown to brokers. Default: none."),
  key: text("The key of that certificate. Default: none."),
} satisfies Record<keyof BusTlsConfig, ConfigSchema>;

const BUS = {
  nats: texts("Addresses of NATS servers."),
  user: text("The name to connect with. Default: none."),
  password: text("The password to connect with; best a reference. Default: none."),
  token: text("The token to connect with; best a reference. Default: none."),
  credentials: text("Text of a credentials file; best a reference to a file. Default: none."),
  nkey: text("Seed of an NKey; best a reference. Default: none."),
  tls: fields("Certificates, as PEM; best references to files. Default: those of Node.", BUS_TLS),
  inboxPrefix: text("What the subjects of replies begin with. Default: _INBOX."),
  secret: text(
    "Shared with all who may vouch for callers: signs who is asking, and is asked of callers; at least 32 characters, best a reference. Default: callers with an identity cannot use the bus, those on it are anonymous.",
  ),
  serveAs: text("Serves the gateway's operations on the bus, under this name. Default: they are not."),
  mount: either(
    "Mounts operations of these namespaces, or all. Default: none.",
    { type: "array", items: { type: "string", minLength: 1 } },
    { type: "boolean" },
  ),
  said: flag(
    "Passes on what sources of other services said when they failed, in details.said. Default: true.",
  ),
  policy: SOURCE_POLICY,
} satisfies Record<keyof BusConfig, ConfigSchema>;

/** What stands under `$defs` for sources. */
export const SOURCE_DEFINITIONS = {
  mcpServer: {
    description:
      "One MCP server: a process to start (command), or an address (url). Members that other hosts use are left alone.",
    type: "object",
    properties: {
      ...MCP_SERVER,
      ...Object.fromEntries(URL_SPELLINGS.map((name) => [name, text("As other hosts spell url.")])),
    },
  },
  openapi: fields("One HTTP API with an OpenAPI document.", OPENAPI, ["document"]),
  credential: {
    anyOf: [
      { type: "string", minLength: 1 },
      fields("A name and a password.", LOGIN, ["username", "password"]),
      fields("How tokens are had.", CLIENT, ["clientId"]),
      fields("A person logs in, with waybill login.", PERSON, ["login"]),
    ],
  },
  bus: fields(
    "The message bus: operations of others are mounted, and ours served, beyond this process.",
    BUS,
    ["nats"],
  ),
} satisfies Record<string, ConfigSchema>;
