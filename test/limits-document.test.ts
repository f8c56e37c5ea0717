import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CALL_LIMITS } from "../src/call/call-limits.ts";
import { readDurableOptions } from "../src/call/nats/durable/durable-options.ts";
import { SCHEMA_LIMITS } from "../src/core/schema/limits.ts";
import { CONFIG_LIMITS } from "../src/gateway/config/config-limits.ts";
import { PARCEL_LIMITS } from "../src/gateway/embedded/parcel.ts";
import { CHANGED_TOOL_LIMITS } from "../src/gateway/lock/changed-tools.ts";
import { LOG_LIMITS } from "../src/gateway/serve/observe/log-fields.ts";
import { MCP_LIMITS } from "../src/mcp/client/mcp-limits.ts";
import { INSTRUCTION_LIMITS } from "../src/mcp/server/introduction.ts";
import { ROOT } from "./run-node.ts";
import { constantOf, constantsOf, defaultsOf } from "./stated-limits.ts";

type Limits = Readonly<Record<string, number>>;

/** The same limits under the names of their group. */
const within = (group: string, limits: Limits): Limits =>
  Object.fromEntries(Object.entries(limits).map(([name, value]) => [`${group}.${name}`, value]));

const { keepMs, duplicateWindowMs } = readDurableOptions();
const DURABLE = { keepMs, duplicateWindowMs };

const inspectorLimit = (name: string): number => constantOf("src/inspector/server/inspector-limits.ts", name);

/** What the code says, by heading and first column of the page. */
const STATED: Readonly<Record<string, Limits>> = {
  "Schemas, values and calls": {
    ...SCHEMA_LIMITS,
    ...defaultsOf("src/core/registry/registry-options.ts", "RegistryLimits"),
    "steps for each part": constantOf("src/core/schema/limits.ts", "STEPS_PER_PART"),
    "work of a pattern": constantOf("src/core/schema/limits.ts", "MAX_PATTERN_WORK"),
    "repetitions of a pattern": constantOf("src/core/schema/pattern.ts", "MAX_COUNTED_REPEATS"),
    "issues of one value": constantOf("src/core/schema/limits.ts", "MAX_ISSUES"),
    "changes of one normalisation": constantOf("src/core/schema/limits.ts", "MAX_REPORTED_CHANGES"),
    "depth of JSON": constantOf("src/core/json/json-depth.ts", "MAX_JSON_DEPTH"),
    "a request id": constantOf("src/core/execution/request-id.ts", "MAX_REQUEST_ID"),
    ...within("details", constantsOf("src/core/errors/error-details.ts", "DETAIL_LIMITS")),
    "details.said": constantOf("src/core/errors/source-words.ts", "SAID_LENGTH"),
    "masked places of a result": constantOf("src/core/secrets/mask-value.ts", "MOST_NAMED"),
    "tokens had at run time": constantOf("src/core/secrets/source-secrets.ts", "MOST_OBTAINED"),
    ...within("said", constantsOf("src/core/result/said.ts", "SAID_LIMITS")),
    ...within("wire", constantsOf("src/core/wire/wire-walk.ts", "WIRE_LIMITS")),
    ...defaultsOf("src/core/client/client.ts", "PagesOptions"),
  },
  Formats: {
    ...within("block", constantsOf("src/formats/tool-envelope/envelope-block.ts", "ENVELOPE_LIMITS")),
    ...within("cutData", constantsOf("src/core/preview/cut-data.ts", "CUT_DATA_LIMITS")),
    ...within("preview", defaultsOf("src/formats/preview/preview-tool-payload.ts", "PreviewLimits")),
    ...within("store", defaultsOf("src/formats/preview/memory-store.ts", "MemoryStoreOptions")),
  },
  "The call protocol": {
    ...CALL_LIMITS,
    "reports of progress": constantOf("src/call/running-call.ts", "UNSENT_REPORTS"),
    "attempts of a caller": constantOf("src/call/call-retries.ts", "MAX_ATTEMPTS"),
    "an input that arrives": constantOf("src/call/wire/answer-line.ts", "UPLOAD_MS"),
    ...within("event", constantsOf("src/call/call-events.ts", "EVENT_LIMITS")),
    ...within("notice", constantsOf("src/call/discovery/notice-fields.ts", "NOTICE_LIMITS")),
    ...within("token", defaultsOf("src/call/credentials/token-verifier.ts", "TokenVerifierOptions")),
    ...within("bus", defaultsOf("src/call/wire/wire-bus.ts", "WireBusOptions")),
    "messages held for NATS": constantOf("src/call/nats/outgoing.ts", "HELD_MESSAGES"),
    "bytes held for NATS": constantOf("src/call/nats/outgoing.ts", "HELD_BYTES"),
    ...within("durable", DURABLE),
    ...within("durable", defaultsOf("src/call/nats/durable/durable-options.ts", "DurableWorkerOptions", 1)),
    "a durable key": constantOf("src/call/nats/durable/submit-call.ts", "MAX_KEY"),
  },
  "Using an MCP server": {
    ...MCP_LIMITS,
    ...constantsOf("src/mcp/client/import-options.ts", "IMPORT_LIMITS"),
    ...defaultsOf("src/mcp/client/connection-options.ts", "ConnectionSettings"),
    ...within("reconnect", defaultsOf("src/mcp/client/connection-options.ts", "ReconnectOptions")),
    ...within("process", defaultsOf("src/mcp/channels/stdio-transport.ts", "StdioLimits")),
    ...within("givenUp", constantsOf("src/mcp/client/callers-in-flight.ts", "GIVEN_UP_LIMITS")),
    "a log line": constantOf("src/mcp/client/mcp-session.ts", "LOG_LINGER_MS"),
    ...within("diff", constantsOf("src/mcp/client/lock/definition-diff.ts", "DIFF_LIMITS")),
    "warnings of a list": constantOf("src/mcp/client/warn-of-first.ts", "MOST_WARNINGS"),
    "a lock file": constantOf("src/mcp/client/lock/lock-file.ts", "MAX_LOCK_BYTES"),
    "a cursor": constantOf("src/mcp/client/list-pages.ts", "MAX_CURSOR_LENGTH"),
    "depth of a definition": constantOf("src/mcp/client/import-tool.ts", "DEFINITION_DEPTH"),
  },
  "Being an MCP server": {
    ...defaultsOf("src/mcp/server/mcp-server-options.ts", "McpServerLimits"),
    ...within("http", defaultsOf("src/mcp/server/http-handler-options.ts", "McpHandlerLimits")),
    ...within("http", defaultsOf("src/mcp/server/http-session-events.ts", "SessionEventLimits")),
    ...within("stdio", defaultsOf("src/mcp/server/serve-stdio.ts", "StdioLimits")),
    ...within("batch", constantsOf("src/mcp/server/catalogue.ts", "BATCH_LIMITS")),
    "operations found": constantOf("src/mcp/server/catalogue.ts", "MAX_FOUND"),
    ...within("given", constantsOf("src/mcp/server/stored-results.ts", "GIVEN_RESULTS")),
    "subscribed resources": constantOf("src/mcp/server/resource-subscriptions.ts", "MAX_SUBSCRIPTIONS"),
    "addresses of one client": constantOf("src/mcp/server/resource-subscriptions.ts", "MAX_PEER_CHARACTERS"),
    "addresses of all clients": constantOf("src/mcp/server/resource-subscriptions.ts", "MAX_ALL_CHARACTERS"),
    "a name of a tool": constantOf("src/mcp/server/tool-name.ts", "MAX_TOOL_NAME"),
    ...within("instructions", INSTRUCTION_LIMITS),
    "settings of an extension": constantOf("src/mcp/extensions.ts", "MAX_SETTINGS"),
    "depth of page addresses": constantOf("src/mcp/server/provider-uri.ts", "META_DEPTH"),
    "an address of a resource": constantOf("src/mcp/server/uri-template.ts", "MAX_URI"),
  },
  "Using an HTTP API": {
    ...defaultsOf("src/openapi/client/openapi-options.ts", "DocumentLimits"),
    ...defaultsOf("src/openapi/client/openapi-options.ts", "TransportLimits"),
    ...defaultsOf("src/openapi/client/openapi-options.ts", "TransportOptions"),
    ...within("retries", defaultsOf("src/openapi/client/openapi-options.ts", "RetryOptions")),
    "reading a document": constantOf("src/openapi/client/document/read-api.ts", "TIMEOUT_MS"),
    "repeated parts of YAML": constantOf("src/openapi/client/document/parse-yaml.ts", "MAX_REPEATED"),
    "parameters of an operation": constantOf(
      "src/openapi/client/document/inline-operation.ts",
      "MAX_PARAMETERS",
    ),
    "answers of an authorization server": constantOf("src/openapi/client/auth/oauth-fetch.ts", "MOST_BYTES"),
    "layers of compression": constantOf("src/openapi/client/transport/content-decoder.ts", "MOST_LAYERS"),
    "origins connected to": constantOf("src/openapi/client/transport/origin-pools.ts", "MOST_POOLS"),
    "resumed streams": constantOf("src/openapi/client/stream-items.ts", "RESUMES"),
  },
  "Being an HTTP API": {
    ...defaultsOf("src/openapi/server/http-handler-options.ts", "HttpHandlerLimits"),
    "an address": constantOf("src/openapi/server/http-handler.ts", "ADDRESS_CHARACTERS"),
    "parameters of a query": constantOf("src/openapi/server/input-place.ts", "MAX_QUERY_PARAMETERS"),
    "properties in a query": constantOf("src/openapi/server/input-place.ts", "MAX_QUERY_PROPERTIES"),
    "an Accept header": constantOf("src/openapi/server/accept.ts", "ACCEPT_CHARACTERS"),
    "an API key": constantOf("src/openapi/server/api-keys.ts", "KEY_CHARACTERS"),
    "a bearer token": constantOf("src/http/bearer.ts", "TOKEN_CHARACTERS"),
    "keys tried for a token": constantOf("src/http/bearer.ts", "KEYS_TRIED"),
    ...within("bearer", defaultsOf("src/http/bearer.ts", "BearerAuth")),
    ...within("server", defaultsOf("src/http/listen.ts", "ListenOptions")),
    ...within("server", constantsOf("src/http/listen.ts", "TIMEOUTS")),
  },
  "The gateway": {
    ...within("limits", defaultsOf("src/gateway/config/gateway-config.ts", "GatewayLimits")),
    ...within("policy", defaultsOf("src/gateway/policy/policy.ts", "OperationPolicy", 1)),
    "a value in a rendered text": constantOf("src/gateway/policy/result-template.ts", "VALUE_CHARACTERS"),
    ...within("policy.retries", defaultsOf("src/gateway/policy/policy.ts", "RetryPolicy")),
    "serve.drainMs": constantOf("src/gateway/serve/serve-settings.ts", "DRAIN_MS"),
    connectTimeoutMs:
      defaultsOf("src/gateway/config/gateway-config.ts", "McpServerConfig")["connectTimeoutMs"] ?? 0,
    "calls of a source that left": constantOf("src/gateway/gateway.ts", "RELOAD_DRAIN_MS"),
    "calls over a connection that was left": constantOf(
      "src/gateway/sources/retried-source.ts",
      "RECONNECT_DRAIN_MS",
    ),
    "calls of a module that changed": constantOf("src/gateway/sources/local-source.ts", "DRAIN_MS"),
    "loading a module": constantOf("src/gateway/load-module.ts", "LOAD_MS"),
    "connecting to a bus": constantOf("src/gateway/sources/bus-connection.ts", "CONNECT_MS"),
    "a token, at least": constantOf("src/gateway/config/config-limits.ts", "LEAST_TOKEN_CHARACTERS"),
    "a secret of the bus, at least": constantOf(
      "src/gateway/config/config-limits.ts",
      "LEAST_SECRET_CHARACTERS",
    ),
    "a token, at most": constantOf("src/gateway/serve/gateway-auth.ts", "TOKEN_CHARACTERS"),
    ...within("metrics", defaultsOf("src/gateway/serve/observe/metrics.ts", "MetricsOptions")),
    "sources in metrics": constantOf("src/gateway/serve/observe/metrics.ts", "MOST_SOURCES"),
    "an operation in a record": constantOf("src/gateway/serve/observe/observer.ts", "MOST_ID_CHARACTERS"),
    "sending telemetry at the end": constantOf("src/gateway/serve/observe/telemetry.ts", "FLUSH_MS"),
    ...within("changed", CHANGED_TOOL_LIMITS),
    ...within("log", LOG_LIMITS),
  },
  "The inspector": {
    "calls remembered": inspectorLimit("KEPT_CALLS"),
    "characters of one value": inspectorLimit("KEPT_CHARACTERS_EACH"),
    "characters remembered": inspectorLimit("KEPT_CHARACTERS"),
    "a name in the list": inspectorLimit("KEPT_NAME_CHARACTERS"),
    "a subject": inspectorLimit("KEPT_SUBJECT_CHARACTERS"),
    "values of a subscription": inspectorLimit("KEPT_VALUES"),
    pages: inspectorLimit("MOST_PAGES"),
    "pages of one subject": inspectorLimit("MOST_PAGES_EACH"),
    "following at a stretch": inspectorLimit("LONGEST_FEED_MS"),
    "calls in an event": inspectorLimit("ROWS_PER_EVENT"),
    "calls that wait": inspectorLimit("MOST_WAITING_ROWS"),
    "between events": inspectorLimit("FEED_INTERVAL_MS"),
    silence: inspectorLimit("PING_MS"),
    runs: inspectorLimit("MOST_RUNS"),
    "runs of one caller": inspectorLimit("MOST_RUNS_EACH"),
    "a run": inspectorLimit("RUN_TIMEOUT_MS"),
    "a result": inspectorLimit("MOST_RESULT_CHARACTERS"),
    "reading an answer": inspectorLimit("WRITE_TIMEOUT_MS"),
    "between looks at access": inspectorLimit("ACCESS_INTERVAL_MS"),
    "a message of an error": inspectorLimit("MOST_MESSAGE_CHARACTERS"),
    "progress that waits": inspectorLimit("MOST_WAITING_BYTES"),
    questions: inspectorLimit("MOST_QUESTIONS"),
    "a large request": inspectorLimit("LARGE_BODY_BYTES"),
    "values of an input": inspectorLimit("MOST_INPUT_VALUES"),
    "schemas of one value": constantOf("src/inspector/server/schema-parts.ts", "MOST_PARTS"),
    "schemas of one input": constantOf("src/inspector/server/schema-parts.ts", "MOST_LOOKS"),
    "a request to look at something": inspectorLimit("LOOKED_BODY_BYTES"),
    "values looked at": inspectorLimit("MOST_LOOKED_VALUES"),
    "looks that wait": inspectorLimit("MOST_LOOKS_WAITING"),
    "a look": inspectorLimit("LOOK_TIMEOUT_MS"),
    "the thread for looks, starting": inspectorLimit("LOOK_START_MS"),
    "the thread for looks, idle": inspectorLimit("LOOK_IDLE_MS"),
    "the thread for looks, memory": inspectorLimit("LOOK_MEMORY_MB"),
    "an operation id": inspectorLimit("MOST_ID_CHARACTERS"),
    "any other request": inspectorLimit("SMALL_BODY_BYTES"),
    "results of a text": inspectorLimit("MOST_DECODED"),
    "calls in the page": constantOf("src/inspector/page/connection/live.ts", "MOST_ROWS"),
  },
  "The config": {
    ...CONFIG_LIMITS,
    "an env file": constantOf("src/gateway/config/env-file.ts", "MOST_ENV_FILE_BYTES"),
    "a file of another host": constantOf("src/gateway/config/import-hosts.ts", "MOST_BYTES"),
    "depth of such a file": constantOf("src/gateway/config/import-hosts.ts", "MOST_DEPTH"),
    "a name of a source": constantOf("src/gateway/config/source-names.ts", "MOST_CHARACTERS"),
    "a pattern": constantOf("src/gateway/glob-pattern.ts", "MOST_PATTERN_CHARACTERS"),
    ...within("modules", constantsOf("src/gateway/glob.ts", "GLOB_LIMITS")),
  },
  "The command": {
    "a given file": constantOf("src/cli/call/given-file.ts", "MAX_GIVEN_BYTES"),
    "an idempotency key": constantOf("src/cli/call/run-call.ts", "MOST_KEY_CHARACTERS"),
    "an interrupted command": constantOf("src/cli/interrupts.ts", "GRACE_MS"),
    "ports tried": constantOf("src/cli/serve/listen-error.ts", "PORTS_TRIED"),
    "doctor, all sources": constantOf("src/cli/doctor/run-doctor.ts", "TIMEOUT_MS"),
    "check, one call": constantOf("src/cli/check/run-check.ts", "TIMEOUT_MS"),
    "check, an input": constantOf("src/cli/check/run-check.ts", "MOST_INPUT_BYTES"),
    "check, tools called": constantOf("src/cli/check/mcp-call-checks.ts", "MOST_CALLED"),
    "check, operations called": constantOf("src/cli/check/openapi-call-checks.ts", "MOST_CALLED"),
    "check, checks listed": constantsOf("src/cli/check/check-report.ts", "REPORT_LIMITS")["checks"] ?? 0,
    ...within("parcels", PARCEL_LIMITS),
    "tariff, a body": constantOf("src/gateway/embedded/tariff-service.ts", "MOST_BYTES"),
    ...within("lint", constantsOf("src/lint/follow-module.ts", "FOLLOW_LIMITS")),
  },
};

const page = readFileSync(join(ROOT, "docs/security.md"), "utf8");
const section = /^## Limits$(.*?)(?=^## |$(?![\s\S]))/ms.exec(page)?.[1] ?? "";

/** The rows below a heading: first column without its backticks, and the number that the second begins with. */
function rowsOf(heading: string): [string, number][] {
  const body = section.split(/^### /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  return [...body.matchAll(/^\| `?([^|`]+?)`? \| ([\d,]+)/gm)].map((row) => [
    row[1] as string,
    Number(row[2]?.replaceAll(",", "")),
  ]);
}

describe("docs/security.md", () => {
  it("has a section of limits for every part", () => {
    const headings = [...section.matchAll(/^### (.*)$/gm)].map((match) => match[1]);
    expect(headings).toEqual(Object.keys(STATED));
  });

  it.each(Object.keys(STATED))("lists the limits as the code states them: %s", (heading) => {
    const rows = rowsOf(heading);
    expect(new Set(rows.map(([name]) => name)).size).toBe(rows.length);
    expect(Object.fromEntries(rows)).toEqual(STATED[heading]);
  });
});
