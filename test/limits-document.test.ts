import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { PARCEL_LIMITS } from "../examples/parcel-office/parcel.ts";
import { CALL_LIMITS } from "../src/call/index.ts";
import { readDurableOptions } from "../src/call/nats/durable/durable-store.ts";
import { TASK_BOUNDS, TASK_LIMITS } from "../src/core/tasks/task.ts";
import { ASKED_LIMITS } from "../src/gateway/approvals/approval-record.ts";
import { WEBHOOK_LIMITS } from "../src/gateway/approvals/approval-webhook.ts";
import { APPROVAL_LIMITS } from "../src/gateway/approvals/approvals.ts";
import { APPROVALS_PAGE_LIMITS } from "../src/gateway/approvals/approvals-route.ts";
import { RULE_LIMITS } from "../src/gateway/approvals/approve-policy.ts";
import { AUDIT_LIMITS } from "../src/gateway/audit/audit-file.ts";
import { SHARED_GRANTS } from "../src/gateway/callers/shared-grants.ts";
import { SHARED_LINKS } from "../src/gateway/callers/shared-links.ts";
import { CONFIG_LIMITS } from "../src/gateway/config/config-path.ts";
import { CHANGED_TOOL_LIMITS } from "../src/gateway/lock/changed-tools.ts";
import { MOST_MARKED } from "../src/gateway/policy/call-notes.ts";
import { LED_LIMITS } from "../src/gateway/replicas/link-frames.ts";
import { REPLAYS } from "../src/gateway/replicas/state-replays.ts";
import { NOTE_BOUNDS } from "../src/gateway/replicas/state-session-notes.ts";
import { EVENT_LOG } from "../src/gateway/replicas/stream-records.ts";
import { LOG_LIMITS } from "../src/gateway/serve/observe/logger.ts";
import { STATE_RESULTS } from "../src/gateway/state/state-results.ts";
import { FLIGHTS } from "../src/gateway/state/state-reuse.ts";
import {
  LONGEST_KEEP_MS,
  LONGEST_LISTED_KEY,
  MOST_LISTED,
  MOST_VALUE_BYTES,
} from "../src/gateway/state/state-store.ts";
import { PROOF_LIMITS } from "../src/http/dpop-proof.ts";
import { INTROSPECTION_LIMITS } from "../src/http/introspection.ts";
import { SCHEMA_LIMITS } from "../src/index.ts";
import { MCP_LIMITS } from "../src/mcp/index.ts";
import { INSTRUCTION_LIMITS } from "../src/mcp/server/to-mcp-server.ts";
import { ROOT } from "./run-node.ts";
import { constantOf, constantsOf, defaultsOf } from "./stated-limits.ts";

type Limits = Readonly<Record<string, number>>;

/** The same limits under the names of their group. */
const within = (group: string, limits: Limits): Limits =>
  Object.fromEntries(Object.entries(limits).map(([name, value]) => [`${group}.${name}`, value]));

const { keepMs, duplicateWindowMs } = readDurableOptions();
const DURABLE = { keepMs, duplicateWindowMs };

const { bounds: streamBounds, ...streamLimits } = EVENT_LOG;
const STREAMS = { ...streamLimits, records: streamBounds.records, bytes: streamBounds.bytes };

const inspectorLimit = (name: string): number => constantOf("src/inspector/server/inspector-limits.ts", name);

/** What the code says, by heading and first column of the page. */
const STATED: Readonly<Record<string, Limits>> = {
  "Schemas, values and calls": {
    ...SCHEMA_LIMITS,
    ...defaultsOf("src/core/registry/registry.ts", "RegistryLimits"),
    "steps for each part": constantOf("src/core/schema/limits.ts", "STEPS_PER_PART"),
    "work of a pattern": constantOf("src/core/schema/limits.ts", "MAX_PATTERN_WORK"),
    "repetitions of a pattern": constantOf("src/core/schema/pattern.ts", "MAX_COUNTED_REPEATS"),
    "issues of one value": constantOf("src/core/schema/limits.ts", "MAX_ISSUES"),
    "changes of one normalisation": constantOf("src/core/schema/limits.ts", "MAX_REPORTED_CHANGES"),
    "depth of JSON": constantOf("src/core/json/json-value.ts", "MAX_JSON_DEPTH"),
    "a request id": constantOf("src/core/execution/call-context.ts", "MAX_REQUEST_ID"),
    ...within("details", constantsOf("src/core/errors/error-details.ts", "DETAIL_LIMITS")),
    "details.said": constantOf("src/core/errors/source-words.ts", "SAID_LENGTH"),
    "masked places of a result": constantOf("src/core/secrets/secret-mask.ts", "MOST_NAMED"),
    ...within("guard", constantsOf("src/gateway/guard/result-guard.ts", "GUARD_LIMITS")),
    ...within("judge", constantsOf("src/gateway/guard/judge.ts", "JUDGE_LIMITS")),
    "tokens had at run time": constantOf("src/core/secrets/secret-mask.ts", "MOST_OBTAINED"),
    ...within("said", constantsOf("src/core/result/said.ts", "SAID_LIMITS")),
    ...within("wire", constantsOf("src/core/wire/wire.ts", "WIRE_LIMITS")),
    ...defaultsOf("src/core/client/client.ts", "PagesOptions"),
  },
  Tasks: {
    ...TASK_BOUNDS,
    ...within("task", TASK_LIMITS),
    "tasks of one stream of changes": constantOf("src/mcp/server/tasks/task-wire.ts", "MOST_HEARD_TASKS"),
    "between messages of a task": constantOf("src/core/tasks/running-task.ts", "MESSAGE_MS"),
  },
  Formats: {
    ...within("block", constantsOf("src/formats/tool-envelope/envelope-block.ts", "ENVELOPE_LIMITS")),
    ...within("cutData", constantsOf("src/core/preview/cut-data.ts", "CUT_DATA_LIMITS")),
    ...within("preview", defaultsOf("src/formats/preview/preview-result.ts", "PreviewLimits")),
    ...within("store", defaultsOf("src/formats/preview/memory-store.ts", "MemoryStoreOptions")),
  },
  "The call protocol": {
    ...CALL_LIMITS,
    "reports of progress": constantOf("src/call/call-handler.ts", "UNSENT_REPORTS"),
    "attempts of a caller": constantOf("src/core/options/shared-options.ts", "MAX_ATTEMPTS"),
    ...within("$SRV", constantsOf("src/call/wire/service-protocol.ts", "SERVICE_LIMITS")),
    "retryBudget.burst": constantsOf("src/call/retry-budget.ts", "BUDGET_DEFAULTS")["burst"] as number,
    "circuits of operations": constantOf("src/call/pending-request-map.ts", "MOST_CIRCUITS"),
    "operations with members left out": constantOf("src/call/wire/members.ts", "MOST_OPERATIONS"),
    "members left out": constantOf("src/call/wire/members.ts", "MOST_MEMBERS"),
    "an input that arrives": constantOf("src/call/wire/answer-lines.ts", "UPLOAD_MS"),
    ...within("event", constantsOf("src/call/call-events.ts", "EVENT_LIMITS")),
    ...within("notice", constantsOf("src/call/discovery/service-notice.ts", "NOTICE_LIMITS")),
    ...within("token", defaultsOf("src/call/credentials/token-verifier.ts", "TokenVerifierOptions")),
    ...within("bus", defaultsOf("src/call/wire/wire-bus.ts", "WireBusOptions")),
    "requests in one message": constantOf("src/call/wire/wire-message.ts", "MOST_REQUESTS"),
    "characters of several requests or answers in one message": constantOf(
      "src/call/wire/reply-batches.ts",
      "MOST_BATCH_TEXT",
    ),
    "messages held for NATS": constantOf("src/call/nats/nats-bus.ts", "HELD_MESSAGES"),
    "bytes held for NATS": constantOf("src/call/nats/nats-bus.ts", "HELD_BYTES"),
    ...within("durable", DURABLE),
    ...within("durable", defaultsOf("src/call/nats/durable/durable-store.ts", "DurableWorkerOptions", 1)),
    "a durable key": constantOf("src/call/nats/durable/durable-calls.ts", "MAX_KEY"),
  },
  "Using an MCP server": {
    ...MCP_LIMITS,
    ...constantsOf("src/mcp/client/import-options.ts", "IMPORT_LIMITS"),
    ...defaultsOf("src/mcp/client/connection-options.ts", "ConnectionSettings"),
    ...within("reconnect", defaultsOf("src/mcp/client/connection-options.ts", "ReconnectOptions")),
    ...within("process", defaultsOf("src/mcp/channels/stdio-transport.ts", "StdioLimits")),
    ...within("givenUp", constantsOf("src/mcp/client/server-questions.ts", "GIVEN_UP_LIMITS")),
    "a log line": constantOf("src/mcp/client/mcp-session.ts", "LOG_LINGER_MS"),
    ...within("diff", constantsOf("src/mcp/client/lock/tool-lock.ts", "DIFF_LIMITS")),
    "warnings of a list": constantOf("src/mcp/client/tool-set.ts", "MOST_WARNINGS"),
    "a lock file": constantOf("src/mcp/client/lock/lock-file.ts", "MAX_LOCK_BYTES"),
    "a cursor": constantOf("src/mcp/client/list-pages.ts", "MAX_CURSOR_LENGTH"),
    "messages sent again": constantOf("src/mcp/channels/streamable-http.ts", "ELSEWHERE_TRIES"),
    "depth of a definition": constantOf("src/mcp/client/import-tool.ts", "DEFINITION_DEPTH"),
  },
  "Being an MCP server": {
    ...defaultsOf("src/mcp/server/mcp-server-options.ts", "McpServerLimits"),
    ...within("http", defaultsOf("src/mcp/server/http/serve-mcp-http.ts", "McpHandlerLimits")),
    ...within("http", defaultsOf("src/mcp/server/http/http-session-events.ts", "SessionEventLimits")),
    ...within("eventLog", defaultsOf("src/mcp/server/http/session-event-log.ts", "MemoryEventLogOptions")),
    "a key of sessions, at least": constantOf("src/mcp/server/sealing-keys.ts", "LEAST_KEY_CHARACTERS"),
    "a sealed text": constantOf("src/mcp/server/sealing-keys.ts", "MAX_SEALED_CHARACTERS"),
    "ended sessions": constantOf("src/mcp/server/http/sealed-sessions.ts", "MAX_ENDED"),
    ...within("stdio", defaultsOf("src/mcp/server/serve-stdio.ts", "StdioLimits")),
    ...within("batch", constantsOf("src/mcp/server/tools/catalogue.ts", "BATCH_LIMITS")),
    "operations found": constantOf("src/mcp/server/tools/catalogue.ts", "MAX_FOUND"),
    ...within("given", constantsOf("src/mcp/server/results/stored-results.ts", "GIVEN_RESULTS")),
    "subscribed resources": constantOf(
      "src/mcp/server/resources/resource-subscriptions.ts",
      "MAX_SUBSCRIPTIONS",
    ),
    "addresses of one client": constantOf(
      "src/mcp/server/resources/resource-subscriptions.ts",
      "MAX_PEER_CHARACTERS",
    ),
    "addresses of all clients": constantOf(
      "src/mcp/server/resources/resource-subscriptions.ts",
      "MAX_ALL_CHARACTERS",
    ),
    "a name of a tool": constantOf("src/mcp/server/tools/served-tools.ts", "MAX_TOOL_NAME"),
    ...within("instructions", INSTRUCTION_LIMITS),
    "settings of an extension": constantOf("src/mcp/provider.ts", "MAX_SETTINGS"),
    "depth of page addresses": constantOf("src/mcp/server/resources/resource-directory.ts", "META_DEPTH"),
    "an address of a resource": constantOf("src/mcp/server/resources/resource-directory.ts", "MAX_URI"),
  },
  "Using an HTTP API": {
    ...defaultsOf("src/openapi/client/openapi-options.ts", "DocumentLimits"),
    ...defaultsOf("src/openapi/client/openapi-options.ts", "TransportLimits"),
    ...defaultsOf("src/openapi/client/openapi-options.ts", "TransportOptions"),
    ...within("retry", constantsOf("src/core/options/shared-options.ts", "RETRY_DEFAULTS")),
    "reading a document": constantOf("src/openapi/client/document/read-api.ts", "TIMEOUT_MS"),
    "repeated parts of YAML": constantOf("src/openapi/client/document/parse-document.ts", "MAX_REPEATED"),
    "parameters of an operation": constantOf(
      "src/openapi/client/document/inline-operation.ts",
      "MAX_PARAMETERS",
    ),
    "answers of an authorization server": constantOf("src/openapi/client/auth/token-source.ts", "MOST_BYTES"),
    "layers of compression": constantOf("src/openapi/client/transport/content-decoder.ts", "MOST_LAYERS"),
    "origins connected to": constantOf("src/openapi/client/transport/origin-pools.ts", "MOST_POOLS"),
    "resumed streams": constantOf("src/openapi/client/imported-operation.ts", "RESUMES"),
  },
  "Being an HTTP API": {
    ...defaultsOf("src/openapi/server/http-handler-options.ts", "HttpHandlerLimits"),
    "answers of a batch": constantOf("src/openapi/server/call-runner.ts", "BATCH_CHARACTERS"),
    "an address": constantOf("src/openapi/server/http-handler.ts", "ADDRESS_CHARACTERS"),
    "parameters of a query": constantOf("src/openapi/server/route-table.ts", "MAX_QUERY_PARAMETERS"),
    "properties in a query": constantOf("src/openapi/server/route-table.ts", "MAX_QUERY_PROPERTIES"),
    "an Accept header": constantOf("src/openapi/server/write-answer.ts", "ACCEPT_CHARACTERS"),
    "an API key": constantOf("src/http/authentication.ts", "KEY_CHARACTERS"),
    "a bearer token": constantOf("src/http/bearer.ts", "TOKEN_CHARACTERS"),
    "keys tried for a token": constantOf("src/http/bearer-keys.ts", "KEYS_TRIED"),
    ...within("bearer", defaultsOf("src/http/bearer.ts", "BearerAuth")),
    ...within("server", defaultsOf("src/http/listen.ts", "ListenLimits")),
    ...within("server", constantsOf("src/http/listen.ts", "TIMEOUTS")),
  },
  "The gateway": {
    ...within("limits", defaultsOf("src/gateway/config/gateway-config.ts", "GatewayLimits")),
    ...within("policy", defaultsOf("src/gateway/policy/policy.ts", "OperationPolicy", 1)),
    "a value in a rendered text": constantOf("src/gateway/policy/result-template.ts", "VALUE_CHARACTERS"),
    ...within("policy.retry", constantsOf("src/core/options/shared-options.ts", "RETRY_DEFAULTS")),
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
    "a value of the state": MOST_VALUE_BYTES,
    "the stream of the state": constantOf("src/gateway/state/jetstream-state-store.ts", "STREAM_BYTES"),
    "a record of the state": LONGEST_KEEP_MS,
    "runs that replicas wait for": FLIGHTS.records,
    "runs of one caller": FLIGHTS.ownRecords,
    "long results of replicas": STATE_RESULTS.bounds.records,
    "long results of one caller": STATE_RESULTS.bounds.ownRecords,
    "bytes of long results": STATE_RESULTS.bounds.bytes,
    "bytes of one caller's long results": STATE_RESULTS.bounds.ownBytes,
    "a key that is listed": LONGEST_LISTED_KEY,
    "keys of one listing": MOST_LISTED,
    ...within("led", LED_LIMITS),
    ...within("streams", STREAMS),
    ...within("notes", { records: NOTE_BOUNDS.records, bytes: NOTE_BOUNDS.bytes }),
    ...within("replays", REPLAYS),
    "a lease of a replica": constantOf("src/gateway/state/replica-lease.ts", "LEASE_MS"),
    "a summary of a replica": constantOf("src/gateway/replicas/replica-summaries.ts", "MOST_BYTES"),
    "a token, at least": constantOf("src/gateway/config/config-path.ts", "LEAST_TOKEN_CHARACTERS"),
    "a secret of the bus, at least": constantOf(
      "src/gateway/config/config-path.ts",
      "LEAST_SECRET_CHARACTERS",
    ),
    "a token, at most": constantOf("src/gateway/serve/gateway-auth.ts", "TOKEN_CHARACTERS"),
    ...within("metrics", defaultsOf("src/gateway/serve/observe/metrics.ts", "MetricsOptions")),
    "sources in metrics": constantOf("src/gateway/serve/observe/metrics.ts", "MOST_SOURCES"),
    "an operation in a record": constantOf("src/gateway/serve/observe/observer.ts", "MOST_ID_CHARACTERS"),
    "sending telemetry at the end": constantOf("src/gateway/serve/observe/telemetry.ts", "FLUSH_MS"),
    ...within("approvals", {
      ...APPROVAL_LIMITS,
      ...ASKED_LIMITS,
      ...RULE_LIMITS,
      ...WEBHOOK_LIMITS,
      ...APPROVALS_PAGE_LIMITS,
    }),
    "findings in a record": MOST_MARKED,
    ...within("changed", CHANGED_TOOL_LIMITS),
    ...within("log", LOG_LIMITS),
    ...within("audit", AUDIT_LIMITS),
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
    "schemas of one value": constantOf("src/gateway/hide-passwords.ts", "MOST_PARTS"),
    "schemas of one input": constantOf("src/gateway/hide-passwords.ts", "MOST_LOOKS"),
    "a request to decode something": inspectorLimit("DECODED_BODY_BYTES"),
    "values in what is decoded": inspectorLimit("MOST_DECODED_VALUES"),
    "decode jobs that wait": inspectorLimit("MOST_DECODES_WAITING"),
    decoding: inspectorLimit("DECODE_TIMEOUT_MS"),
    "the decode worker, starting": inspectorLimit("DECODE_START_MS"),
    "the decode worker, idle": inspectorLimit("DECODE_IDLE_MS"),
    "the decode worker, memory": inspectorLimit("DECODE_MEMORY_MB"),
    "an operation id": inspectorLimit("MOST_ID_CHARACTERS"),
    "any other request": inspectorLimit("SMALL_BODY_BYTES"),
    "results of a text": inspectorLimit("MOST_DECODED"),
    "log lines of one source": inspectorLimit("KEPT_LINES_EACH"),
    "characters of one log line": inspectorLimit("KEPT_LINE_CHARACTERS"),
    "characters of all logs": inspectorLimit("KEPT_LOG_CHARACTERS"),
    "sources with a log": inspectorLimit("KEPT_LOG_SOURCES"),
    "resources listed of one source": inspectorLimit("MOST_OFFERED"),
    "requests for resources": inspectorLimit("MOST_OFFERS_ASKED"),
    "a request for a resource": inspectorLimit("OFFER_TIMEOUT_MS"),
    "resources followed": inspectorLimit("MOST_FOLLOWED"),
    "resources one caller follows": inspectorLimit("MOST_FOLLOWED_EACH"),
    "a text to be found": inspectorLimit("MOST_FIND_CHARACTERS"),
    "calls in the page": constantOf("src/inspector/page/connection/live.ts", "MOST_ROWS"),
  },
  "The config": {
    ...CONFIG_LIMITS,
    "an env file": constantOf("src/gateway/config/env-files.ts", "MOST_ENV_FILE_BYTES"),
    "a file of another host": constantOf("src/gateway/config/import-hosts.ts", "HOST_FILE_BYTES"),
    "depth of such a file": constantOf("src/gateway/config/import-hosts.ts", "MOST_DEPTH"),
    "a name of a source": constantOf("src/gateway/config/loaded-config.ts", "MOST_CHARACTERS"),
    "a pattern": constantOf("src/gateway/glob.ts", "MOST_PATTERN_CHARACTERS"),
    ...within("modules", constantsOf("src/gateway/glob.ts", "GLOB_LIMITS")),
  },
  "Tokens of callers": {
    ...INTROSPECTION_LIMITS,
    ...within("introspection", defaultsOf("src/http/introspection.ts", "TokenIntrospection")),
    "a token that is not valid": constantOf("src/http/introspection.ts", "INVALID_MS"),
    "an answer of an issuer": constantOf("src/http/introspection.ts", "ANSWER_MS"),
    "an answer about a token": constantOf("src/http/introspection.ts", "MOST_ANSWER_CHARACTERS"),
    "an issuer that failed": constantOf("src/http/introspection.ts", "FAILURE_MS"),
    "a proof": constantOf("src/http/dpop-proof.ts", "PROOF_CHARACTERS"),
    "an id of a proof": constantOf("src/http/dpop-proof.ts", "JTI_CHARACTERS"),
    ...within("dpop", defaultsOf("src/http/dpop-proof.ts", "DpopAuth")),
    ...PROOF_LIMITS,
    "a nonce": constantOf("src/http/dpop-proof.ts", "NONCE_MS"),
    "nonces of servers": constantOf("src/http/oauth/dpop-key.ts", "MOST_SERVERS"),
  },
  Logins: {
    "a login": constantOf("src/cli/login/run-login.ts", "PATIENCE_MS"),
    "pasted addresses": constantOf("src/cli/login/run-login.ts", "MOST_PASTED"),
    "connections of a browser": constantOf("src/http/oauth/login-redirect.ts", "MOST_CONNECTIONS"),
    "an answer, in time": constantOf("src/http/oauth/oauth-authorizer.ts", "ANSWER_MS"),
    "an answer, in size": constantOf("src/http/oauth/guarded-fetch.ts", "MOST_ANSWER_BYTES"),
    redirects: constantOf("src/http/oauth/oauth-authorizer.ts", "REDIRECTS"),
    "kept tokens": constantOf("src/http/oauth/encrypted-store.ts", "MOST_TOKEN_BYTES"),
    "a keyring": constantOf("src/http/oauth/store-key.ts", "ANSWER_MS"),
    "a renewal, early": constantOf("src/http/oauth/oauth-authorizer.ts", "EARLY_MS"),
    "a lock": constantOf("src/http/oauth/file-lock.ts", "LOCK_HOLDS_MS"),
    "missing scopes": constantOf("src/http/oauth/login.ts", "MOST_SCOPE_CHARACTERS"),
    "a link of a caller": constantOf("src/gateway/callers/login-tickets.ts", "TICKET_MS"),
    links: constantOf("src/gateway/callers/login-tickets.ts", "MOST_TICKETS"),
    "links of one caller": constantOf("src/gateway/callers/login-tickets.ts", "MOST_TICKETS_OF_ONE"),
    "wrong codes": constantOf("src/gateway/callers/login-tickets.ts", "MOST_WRONG_CODES"),
    "a caller's browser": constantOf("src/gateway/callers/pending-logins.ts", "COME_BACK_MS"),
    "callers' browsers": constantOf("src/gateway/callers/pending-logins.ts", "MOST_PENDING"),
    "browsers of one caller": constantOf("src/gateway/callers/pending-logins.ts", "MOST_PENDING_OF_ONE"),
    "a page of a caller": constantOf("src/gateway/callers/login-page.ts", "VISIT_MS"),
    "pages of callers": constantOf("src/gateway/callers/login-page.ts", "MOST_VISITS"),
    "a caller's own key": constantOf("src/gateway/callers/login-page.ts", "MOST_KEY_CHARACTERS"),
    "logins of callers": constantOf("src/gateway/callers/caller-logins.ts", "MOST_GRANTS"),
    "calls that wait for a login": constantOf("src/gateway/callers/caller-logins.ts", "MOST_WAITING"),
    "callers that are connected": constantOf("src/gateway/callers/caller-connections.ts", "MOST_CONNECTIONS"),
    "callers whose tokens are remembered": constantOf(
      "src/gateway/callers/caller-tokens.ts",
      "MOST_REMEMBERED",
    ),
    "shared logins, unused": SHARED_GRANTS.keepMs,
    ...within("sharedLogins", SHARED_GRANTS.bounds),
    "a browser that is handed on": SHARED_LINKS.returnMs,
    ...within("sharedLinks", SHARED_LINKS.bounds),
    "an idle connection of a caller": constantOf("src/gateway/callers/caller-connections.ts", "IDLE_MS"),
  },
  "The command": {
    "a given file": constantOf("src/cli/call/given-file.ts", "MAX_GIVEN_BYTES"),
    "an idempotency key": constantOf("src/cli/call/run-call.ts", "MOST_KEY_CHARACTERS"),
    "an interrupted command": constantOf("src/cli/interrupts.ts", "GRACE_MS"),
    "ports tried": constantOf("src/cli/serve/served-places.ts", "PORTS_TRIED"),
    "doctor, all sources": constantOf("src/cli/doctor/run-doctor.ts", "TIMEOUT_MS"),
    "check, one call": constantOf("src/cli/check/run-check.ts", "TIMEOUT_MS"),
    "check, an input": constantOf("src/cli/check/run-check.ts", "MOST_INPUT_BYTES"),
    "check, tools called": constantOf("src/cli/check/mcp-call-checks.ts", "MOST_CALLED"),
    "check, operations called": constantOf("src/cli/check/check-openapi.ts", "MOST_CALLED"),
    "check, checks listed": constantsOf("src/cli/check/check-report.ts", "REPORT_LIMITS")["checks"] ?? 0,
    ...within("parcels", PARCEL_LIMITS),
    "tariff, a body": constantOf("examples/parcel-office/tariff-service.ts", "MOST_BYTES"),
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
