import { type BadInput, SECRET } from "./bad-input-cases.ts";

/** A config with a mistake, read by `waybill list`. */
function config(title: string, text: string, says: BadInput["says"], name = "a.json", lines = 3): BadInput {
  return { title, args: ["list", "--config", name], files: { [name]: text }, says, lines };
}

const yaml = (title: string, text: string, says: BadInput["says"]): BadInput =>
  config(title, text, says, "a.yaml");

/** Configs that cannot be used. */
export const CONFIGS: readonly BadInput[] = [
  {
    title: "a config that is missing",
    args: ["list", "-c", "none.json"],
    says: ['"none.json" does not exist'],
  },
  {
    title: "a folder for a config",
    args: ["list", "-c", "folder"],
    files: { folder: null },
    says: ["no file"],
  },
  config("an unknown kind of config", "x", [/toml|kind|json/], "a.toml"),
  config("an empty config", "", ["a.json:1:1", "ends where a value should stand"]),
  config("a config of a list", "[]", ["a.json", /object/]),
  config("a config of a text", '"x"', ["a.json", /object/]),
  config("JSON that ends too early", '{\n  "serve": {\n', ["a.json:"]),
  config("JSON with a slip", '{\n  "serve": oops\n}', ["a.json:2:12"]),
  config("JSON with a missing comma", '{\n  "mcpServers": {}\n  "openapi": {}\n}', ["a.json:3:3"]),
  config("a name that stands twice", '{\n  "name": "a",\n  "name": "b"\n}', ["a.json:3:3", '"name"']),
  config("a misspelt key", '{\n  "mcpServer": {}\n}', ["a.json:2:3", 'did you mean "mcpServers"?']),
  config("a key that nobody knows", '{\n  "frobnicate": 1\n}', ["a.json:2:3", "frobnicate"]),
  config("a misspelt key further in", '{\n  "serve": {\n    "prot": 1\n  }\n}', ["a.json:3:5", '"port"']),
  config("a port that is a text", '{\n  "serve": { "port": "80a" }\n}', [
    "a.json:2:22",
    "serve.port",
    '"80a"',
  ]),
  config("a port that is too big", '{"serve":{"port":70000}}', ["a.json:1:", "serve.port", "70000"]),
  config("a part of the wrong type", '{\n  "mcpServers": []\n}', ["a.json:2:17", "mcpServers"]),
  config("a server without anything", '{"mcpServers":{"x":{}}}', ["mcpServers.x", "command", "url"]),
  config("a server with both", '{"mcpServers":{"x":{"command":"a","url":"http://b"}}}', ["mcpServers.x"]),
  config("a server at no address", '{"mcpServers":{"x":{"url":"nope"}}}', ["mcpServers.x.url"]),
  config("an API without a document", '{"openapi":{"x":{}}}', ["openapi.x", "document"]),
  config("a format that there is not", '{"serve":{"format":"xml"}}', ["serve.format", "xml"]),
  config("a token that is too short", '{"serve":{"auth":{"tokens":{"me":{"token":"short"}}}}}', [
    "token",
    "16",
  ]),
  config("a session key that is too short", '{"serve":{"sessions":{"key":"short"}}}', [
    "serve.sessions.key",
    "32",
    "it has 5",
  ]),
  config(
    "a second session key that is too short",
    `{"serve":{"sessions":{"key":["${SECRET.repeat(4)}","x"]}}}`,
    ["serve.sessions.key[1]", "32", "it has 1"],
  ),
  config("session keys without a key", '{"serve":{"sessions":{"key":[]}}}', [
    "serve.sessions.key",
    "one key",
  ]),
  config("a session key that is a number", '{"serve":{"sessions":{"key":5}}}', ["serve.sessions.key"]),
  config("an open host without tokens", '{"serve":{"host":"0.0.0.0"}}', ["serve.host", "serve.auth"]),
  config(
    "a secret of the wrong type beside a secret",
    `{"mcpServers":{"x":{"command":"a","env":{"TOKEN":"${SECRET}","KEY":["${SECRET}"]}}}}`,
    ["mcpServers.x.env.KEY"],
  ),
  config(
    "a secret in a header of the wrong shape",
    `{"mcpServers":{"x":{"url":"http://a","headers":"Bearer ${SECRET}"}}}`,
    ["mcpServers.x.headers"],
  ),
  config("a variable that is not set", `{"serve":{"host":"\${NO_SUCH_VARIABLE_HERE}"}}`, [
    "NO_SUCH_VARIABLE_HERE",
    "not set",
  ]),
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference is what it looks like
  config("a reference that is not closed", '{"serve":{"host":"${OPEN"}}', ["serve.host"]),
  config(
    "three mistakes at once",
    '{\n  "serv": {},\n  "openapi": 1,\n  "serve": { "port": -1 }\n}',
    ["3 mistakes", "a.json:2:3", "a.json:3:14", "a.json:4:22"],
    "a.json",
    4,
  ),
  config(
    "a hundred mistakes",
    JSON.stringify(Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`zz${at}`, 1]))),
    [/mistakes/],
    "a.json",
    23,
  ),
  config(
    "a config as deep as a well",
    `{"openapi":${'{"a":'.repeat(200)}1${"}".repeat(200)}}`,
    [/deep/],
    "a.json",
    4,
  ),
  config("a config of megabytes", `{"$schema":"${"x".repeat(5_000_000)}"}`, [/large|bytes|MiB/]),
  config("strange signs in a key", '{\n  "\\u001b[31mred\\u202e": 1\n}', ["a.json:2:3"]),
  yaml("YAML with a slip", "serve:\n  port: [1\n", ["a.yaml:"]),
  yaml("YAML with a tab", "serve:\n\tport: 1\n", ["a.yaml:2:"]),
  yaml("a misspelt key in YAML", "serve:\n  port: 1\nmcpServer: {}\n", ["a.yaml:3:1", '"mcpServers"']),
  yaml("a wrong type in YAML", "serve:\n  port: eighty\n", ["a.yaml:2:9", "serve.port"]),
  yaml("a key twice in YAML", "serve: {}\nserve: {}\n", ["a.yaml:2:"]),
  config("an anchor that holds itself", "openapi: &a\n  x: *a\n", ["a.yaml:2:6", "deep"], "a.yaml", 4),
  yaml("an alias of nothing", "openapi: *nothing\n", ["a.yaml:1:"]),
  yaml("aliases that multiply", bomb(), ["a.yaml"]),
  yaml("two documents", "serve: {}\n---\nserve: {}\n", ["a.yaml:"]),
  config("a module that throws", "throw new Error('no luck');", ["a.mjs", "no luck"], "a.mjs"),
  config("a module with a slip", "export default {", ["a.mjs"], "a.mjs"),
  config("a module without a config", "export const x = 1;", ["a.mjs"], "a.mjs"),
  config("a module that imports nothing", "import './none.mjs'; export default {};", ["a.mjs"], "a.mjs"),
  config("TypeScript with a slip", "export default { serve: { port: };", ["a.ts"], "a.ts"),
  config("a wrong type in a module", "export default { serve: { port: 'x' } };", ["serve.port"], "a.mjs"),
  {
    title: "two configs in one folder",
    args: ["list"],
    files: { "waybill.config.yaml": "serve: {}\n" },
    says: ["waybill.config.json", "waybill.config.yaml"],
  },
];

function bomb(): string {
  const rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"];
  for (let at = 1; at < 12; at++)
    rows.push(
      `a${at}: &a${at} [${Array(9)
        .fill(`*a${at - 1}`)
        .join(", ")}]`,
    );
  return `${rows.join("\n")}\n`;
}
