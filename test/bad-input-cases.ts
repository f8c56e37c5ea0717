/** One mistake, and what is said about it. */
export interface BadInput {
  readonly title: string;
  readonly args: readonly string[];
  /** Parts of the one message on stderr. */
  readonly says: readonly (string | RegExp)[];
  /** @default 2 */
  readonly code?: number;
  /** Files of the folder it runs in, besides the project's. `null` makes a folder. */
  readonly files?: Readonly<Record<string, string | null>>;
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Lines on stderr. @default 3 */
  readonly lines?: number;
  /** What is allowed on stdout. @default nothing */
  readonly stdout?: RegExp;
}

/** A token that no message may hold. */
export const SECRET = "sk-live-9f8e7d6c5b4a39281706";

const call = (...words: string[]): readonly string[] => ["call", "shop.order", ...words];

/** Wrong commands, flags and arguments. */
export const COMMAND_LINES: readonly BadInput[] = [
  {
    title: "a command that does not exist",
    args: ["frobnicate"],
    says: ['no command "frobnicate"', 'help" lists what there is'],
  },
  { title: "a misspelt command", args: ["lst"], says: ['no command "lst"', 'did you mean "list"?'] },
  { title: "a misspelt command in the help", args: ["help", "serv"], says: ['did you mean "serve"?'] },
  { title: "a flag before any command", args: ["--frob"], says: ["no option --frob"] },
  { title: "a misspelt flag of the whole", args: ["--verion"], says: ["--version"] },
  { title: "a flag that does not exist", args: ["list", "--frob"], says: ["no option --frob"] },
  { title: "a misspelt flag", args: ["list", "--jsn"], says: ["no option --jsn", "--json"] },
  { title: "a misspelt flag of serve", args: ["serve", "--prot", "1"], says: ["no option --prot", "--port"] },
  { title: "a short flag that does not exist", args: ["call", "-x", "shop.order"], says: ["-x"] },
  { title: "a missing operation", args: ["call"], says: ["needs <operation>"] },
  { title: "a missing operation to describe", args: ["describe"], says: ["needs <operation>"] },
  { title: "a missing shell", args: ["completion"], says: ["needs <shell>"] },
  { title: "an unknown shell", args: ["completion", "tcsh"], says: ["bash, zsh, fish, powershell", "tcsh"] },
  { title: "a flag without its value", args: ["list", "--config"], says: ["--config", "needs a value"] },
  {
    title: "one argument too many",
    args: ["describe", "shop.order", "more"],
    says: ["takes fewer arguments"],
  },
  { title: "an empty command", args: ["", "list"], says: ['no command ""'] },
  { title: "a command of strange signs", args: ["\u001b[31mlist\u0007"], says: ["no command"] },
  { title: "a flag of strange signs", args: ["list", "--\u001b]0;x\u0007"], says: ["no option"] },
  { title: "a very long command", args: ["x".repeat(5_000)], says: ["no command"] },
  {
    title: "a port that is no number",
    args: ["serve", "--port", "80a"],
    says: ["--port", "0 to 65535", "80a"],
  },
  { title: "a port beyond the last", args: ["serve", "--port", "65536"], says: ["--port", "65536"] },
  { title: "a negative port", args: ["serve", "--port", "-1"], says: ["--port"] },
  { title: "a host that is none of ours", args: ["serve", "--host", "203.0.113.7"], says: ["serve.auth"] },
  {
    title: "an unknown level of the log",
    args: ["serve", "--log-level", "loud"],
    says: ["--log-level", "loud"],
  },
  {
    title: "an unknown format of the log",
    args: ["serve", "--log-format", "xml"],
    says: ["json, text", "xml"],
  },
  { title: "take nothing", args: call("id=1", "--take", "0"), says: ["--take", "whole number from 1"] },
  { title: "take less than nothing", args: call("id=1", "--take", "-3"), says: ["--take"] },
  { title: "take a part", args: call("id=1", "--take", "1.5"), says: ["--take", "1.5"] },
  {
    title: "a time without sense",
    args: call("id=1", "--timeout", "soon"),
    says: ["--timeout", "500ms, 5s or 2m"],
  },
  { title: "no time at all", args: call("id=1", "--timeout", "0"), says: ["--timeout"] },
  { title: "a negative time", args: call("id=1", "--timeout", "-5s"), says: ["--timeout"] },
  { title: "more time than timers have", args: call("id=1", "--timeout", "9999999999"), says: ["--timeout"] },
  {
    title: "an unknown format",
    args: call("id=1", "--format", "xml"),
    says: ["--format takes one of", "xml"],
  },
  {
    title: "two shapes of one result",
    args: call("id=1", "--raw", "--envelope"),
    says: ["cannot be given together"],
  },
  { title: "raw JSON", args: call("id=1", "--raw", "--json"), says: ["--raw and --json"] },
  { title: "an empty idempotency key", args: call("id=1", "--idempotency-key", ""), says: ["1 to 255"] },
  { title: "two targets", args: ["list", "--mcp", "a", "--openapi", "b"], says: ["--mcp and --openapi"] },
  { title: "an empty MCP server", args: ["list", "--mcp", ""], says: ["--mcp needs"] },
  { title: "an open quote", args: ["list", "--mcp", "node 'a"], says: ["not closed"] },
  { title: "no address of a gateway", args: ["list", "--url", "gateway"], says: ["--url takes an address"] },
  {
    title: "an address of a file",
    args: ["list", "--url", "file:///etc/passwd"],
    says: ["--url takes an address"],
  },
  {
    title: "a token of nobody",
    args: ["list", "--token-env", "MINE"],
    env: { MINE: SECRET },
    says: ["--token-env goes with"],
  },
  {
    title: "a token that is not set",
    args: ["list", "--url", "http://127.0.0.1:1", "--token-env", "NOT_SET"],
    says: ["NOT_SET", "not set"],
  },
  { title: "no format to turn into", args: ["transcode"], says: ['"transcode" needs --to <format>;'] },
  { title: "nothing to check", args: ["check"], says: [/target|name/i], lines: 4 },
  { title: "a check of nothing known", args: ["check", "nosuch"], says: ["nosuch"] },
  { title: "a check at no address", args: ["check", "x.json", "--base-url", "nope"], says: ["--base-url"] },
  { title: "a check with broken input", args: ["check", "x.json", "--input", "a={"], says: [/JSON/] },
  { title: "init from nothing", args: ["init", "--from", "none.json"], says: ["none.json"] },
  { title: "init of an unknown format", args: ["init", "--format", "xml"], says: ["xml"] },
  {
    title: "init of a server without a name",
    args: ["init", "--mcp", "npx x"],
    says: ["--mcp takes a name"],
  },
  {
    title: "init of a document that is missing",
    args: ["init", "--force", "--openapi", "a=none.yaml"],
    says: ["none.yaml"],
  },
  { title: "types into a folder", args: ["types", "--out", "."], says: ["it is a folder"] },
];

/** Inputs of calls, and results that are given. */
export const INPUTS: readonly BadInput[] = [
  {
    title: "an operation that does not exist",
    args: ["call", "shop.nothing"],
    says: ['no operation "shop.nothing"'],
    code: 3,
  },
  {
    title: "a misspelt operation",
    args: ["call", "shop.ordr"],
    says: ['did you mean "shop.order"?'],
    code: 3,
  },
  {
    title: "a misspelt operation to describe",
    args: ["describe", "shp.order"],
    says: ['did you mean "shop.order"?'],
    code: 3,
  },
  { title: "an empty operation", args: ["call", ""], says: ["no operation"], code: 3 },
  {
    title: "an operation of strange signs",
    args: ["call", "\u001b[2J\u202eshop"],
    says: ["no operation"],
    code: 3,
  },
  { title: "JSON that ends too early", args: call('{"id":'), says: ["not JSON", "ends too early"] },
  { title: "JSON with a slip", args: call('{"id": 1,\n "tags": [x]}'), says: ["line 2, column 11"] },
  { title: "JSON with a comma too many", args: call('{"id": 1,}'), says: ["line 1, column 10"] },
  { title: "a word that is no input", args: call("hello"), says: ['"hello" is not understood', "key=value"] },
  { title: "an input without a key", args: call("=1"), says: ["not understood"] },
  { title: "JSON of one key with a slip", args: call("id:=[1"), says: ['"id" is not JSON'] },
  { title: "a key given twice", args: call("id=1", "id=2"), says: ['"id" is given more than once'] },
  { title: "a number that is none", args: call("id=abc"), says: ["id"], code: 3, lines: 4 },
  {
    title: "an input that is missing",
    args: call(),
    says: ["id is missing", "describe shop.order"],
    code: 3,
    lines: 4,
  },
  { title: "a misspelt key", args: call("id=1", "tgs=a"), says: ['did you mean "tags"'], code: 3, lines: 4 },
  { title: "a file that is missing", args: call("@none.json"), says: ['"none.json" does not exist'] },
  { title: "a folder for a file", args: call("@folder"), files: { folder: null }, says: ["is a folder"] },
  { title: "a file without a name", args: call("id=@"), says: ["file name is missing"] },
  {
    title: "a file that is no JSON",
    args: call("@a.json"),
    files: { "a.json": "{\n  id: 1\n}" },
    says: ["a.json", "line 2, column 3"],
  },
  {
    title: "a file that is no text",
    args: call("@a.json"),
    files: { "a.json": "\u0000binary" },
    says: ["a.json", "line 1, column 1"],
  },
  { title: "nothing on stdin", args: call("-"), stdin: "", says: ["stdin", "empty"] },
  { title: "no JSON on stdin", args: call("-"), stdin: "hello", says: ["stdin", "line 1, column 1"] },
  { title: "two whole inputs", args: call("{}", "-"), stdin: "{}", says: ["more than once"] },
  { title: "a list with a key besides", args: call("[1]", "id=1"), says: ["JSON object"] },
  { title: "a key with an empty part", args: call("a..b=1"), says: ["empty part"] },
  {
    title: "an output that cannot be written",
    args: call("id=1", "--output", "none/a.json"),
    says: ["none/a.json", "ENOENT"],
  },
  {
    title: "a result that says no",
    args: ["call", "shop.refuse"],
    says: ["tool error", "OUT_OF_STOCK"],
    code: 1,
    stdout: /^.*\n$/,
  },
  { title: "an operation that breaks", args: ["call", "shop.breaks"], says: ["EXECUTION_ERROR"], code: 3 },
  {
    title: "a time that is up",
    args: ["call", "shop.sleeps", "--timeout", "50ms"],
    says: ["TIMEOUT"],
    code: 3,
  },
  { title: "a result that is missing", args: ["decode", "none.json"], says: ['"none.json" does not exist'] },
  {
    title: "a folder for a result",
    args: ["decode", "folder"],
    files: { folder: null },
    says: ["is a folder"],
  },
  { title: "nothing to decode", args: ["decode"], stdin: "", says: ["empty"] },
  { title: "no result to decode", args: ["decode"], stdin: '{"a": }', says: [/JSON|result/] },
  {
    title: "both shapes of a decoded result",
    args: ["decode", "--data", "--json"],
    stdin: "{}",
    says: ["--data and --json"],
  },
  { title: "no format to transcode to", args: ["transcode"], stdin: "{}", says: ["--to"] },
  {
    title: "an unknown format to transcode to",
    args: ["transcode", "--to", "xml"],
    stdin: "{}",
    says: ["xml", "tool-envelope"],
  },
  { title: "an unknown format to encode to", args: ["encode", "{}", "--to", "mpc"], says: ["mpc"] },
  { title: "no JSON to encode", args: ["encode", '{"a":'], says: ["JSON"] },
  {
    title: "a status that there is not",
    args: ["encode", "{}", "--status", "fine"],
    says: ["--status", "fine"],
  },
  {
    title: "a duration that is no number",
    args: ["encode", "{}", "--duration-ms", "-4"],
    says: ["--duration-ms"],
  },
  { title: "a tier that there is not", args: ["encode", "{}", "--tier", "gold"], says: ["--tier", "gold"] },
];
