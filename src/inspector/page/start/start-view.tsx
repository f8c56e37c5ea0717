import "./start.css";
import { useState } from "preact/hooks";
import type { CallRow, ReplicasAnswer, SourceView, StartAnswer } from "../../protocol.ts";
import { OutcomeBadge } from "../calls/call-list.tsx";
import { useAsked, useLive, useNow, useRevision, useSession } from "../page-session.ts";
import { Badge, CopyButton, Empty, PendingNotice, Tabs } from "../parts/controls.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { showAgo, showCount, showFor, visibleText } from "../parts/show.ts";
import { toHash } from "../router.ts";
import { STATES, summaryOf, useSources } from "../sources/source-state.ts";

/** The first view: where the gateway is reached, how a client is connected, and how everything is doing. */
export function StartView() {
  const { api } = useSession();
  const operations = useRevision("operations");
  const asked = useAsked((signal) => api.start(location.origin, signal), [api, operations]);
  return (
    <div class="content start">
      <div class="stack">
        <Addresses />
        <section class="card stack" aria-labelledby="start-connect">
          <h2 id="start-connect">Connect a client</h2>
          <PendingNotice {...asked} what="what clients need" />
          {asked.value !== undefined && <Clients clients={asked.value.clients} />}
        </section>
        {asked.value?.tools !== undefined && <ToolList tools={asked.value.tools} />}
      </div>
      <div class="stack">
        <Sources />
        <Replicas />
        <LastCalls />
      </div>
    </div>
  );
}

const PLACES = [
  ["mcp", "MCP"],
  ["api", "HTTP API"],
  ["document", "OpenAPI document"],
  ["docs", "API reference"],
  ["metrics", "Metrics"],
] as const;

function Addresses() {
  const { hello } = useSession();
  const served = PLACES.flatMap(([key, name]) => {
    const path = hello.places[key];
    return path === undefined ? [] : [{ name, key, address: `${location.origin}${path}` }];
  });
  return (
    <section class="card stack" aria-labelledby="start-addresses">
      <h2 id="start-addresses">Addresses</h2>
      {served.length === 0 && <p class="soft">The config serves neither MCP nor HTTP.</p>}
      <ul class="addresses">
        {served.map(({ name, key, address }) => (
          <li key={key}>
            <span class="soft small">{name}</span>
            <code class="break">
              {key === "document" || key === "docs" ? <a href={address}>{address}</a> : address}
            </code>
            <CopyButton label="Copy" what={`the address of ${name}`} text={() => address} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Clients({ clients }: Pick<StartAnswer, "clients">) {
  const [chosen, setChosen] = useState("");
  const { hello } = useSession();
  if (clients.length === 0) return <p class="soft">The config does not serve MCP.</p>;
  return (
    <>
      <Tabs
        label="Clients"
        chosen={chosen}
        onChoose={setChosen}
        tabs={clients.map(({ client, title, where, text }) => ({
          key: client,
          label: title,
          panel: () => (
            <div class="stack tight">
              <div class="row small">
                <span class="soft grow">{where}</span>
                <CopyButton label="Copy" what={`the settings of ${title}`} text={() => text} />
              </div>
              <pre class="sheet">{visibleText(text)}</pre>
            </div>
          ),
        }))}
      />
      <p class="soft small">
        A program that starts its servers itself, such as Claude Desktop:{" "}
        <code>npx --no waybill connect claude</code>
      </p>
      {hello.isAuthOn && (
        <p class="soft small">
          Set the environment variable <code>WAYBILL_TOKEN</code> to your token before you start the client.
        </p>
      )}
    </>
  );
}

const MOST_SOURCES = 8;
/** Those that want attention stand first. */
const ORDER: Readonly<Record<SourceView["state"]["status"], number>> = {
  down: 0,
  connecting: 1,
  up: 2,
  disabled: 3,
  closed: 4,
};

function Sources() {
  const asked = useSources();
  const sources = (asked.value?.sources ?? []).toSorted(
    (a, b) => ORDER[a.state.status] - ORDER[b.state.status],
  );
  return (
    <section class="card stack" aria-labelledby="start-sources">
      <header class="row">
        <h2 id="start-sources" class="grow">
          Sources
        </h2>
        <a class="small" href={toHash("sources")}>
          All sources
        </a>
      </header>
      <PendingNotice {...asked} what="the sources" />
      {asked.value !== undefined && <p class="soft small">{summaryOf(sources)}</p>}
      <ul class="lines">
        {sources.slice(0, MOST_SOURCES).map((source) => (
          <SourceLine key={source.name} source={source} />
        ))}
      </ul>
      {sources.length > MOST_SOURCES && (
        <p class="soft small">and {(sources.length - MOST_SOURCES).toLocaleString("en")} more</p>
      )}
    </section>
  );
}

function SourceLine({ source: { name, state, operations } }: { readonly source: SourceView }) {
  const [tone, sign] = STATES[state.status];
  return (
    <li>
      <Badge tone={tone} sign={sign}>
        {state.status}
      </Badge>
      <a class="mono cut" href={toHash("sources", name)}>
        {visibleText(name, 100)}
      </a>
      <span class="soft small">{showCount(operations, "operation")}</span>
      {state.status === "down" && (
        <p class="toned bad small">
          <PlainText text={state.reason} most={300} />
        </p>
      )}
    </li>
  );
}

function ToolList({ tools }: { readonly tools: NonNullable<StartAnswer["tools"]> }) {
  const { count, tokens, isHeavy, isCatalogue, sources } = tools;
  return (
    <section class="card stack" aria-labelledby="start-tools">
      <header class="row">
        <h2 id="start-tools" class="grow">
          Tool list
        </h2>
        {isHeavy && <Badge tone="warn">heavy</Badge>}
      </header>
      <p>
        {showCount(count, "tool")}, about {tokens} tokens of a model's context
        {isCatalogue && ", as a catalogue"}.
      </p>
      {isHeavy && (
        <p class="small">
          Serve the catalogue, four tools that search and call the rest:{" "}
          <code class="break">{'"serve": { "mcp": { "catalogue": true } }'}</code>, or list fewer tools with{" "}
          <code>policy.allow</code> of a source.
        </p>
      )}
      {sources.length > 1 && (
        <ul class="lines">
          {sources.map(({ name, tokens: each }) => (
            <li key={name}>
              <a class="mono cut" href={toHash("sources", name)}>
                {visibleText(name, 100)}
              </a>
              <span class="soft small">{each} tokens</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** How often replicas tell of themselves. */
const REPLICAS_MS = 5_000;

/** All replicas of the gateway and the last calls of each, where it has others. */
function Replicas() {
  const { api, hello } = useSession();
  const now = useNow(REPLICAS_MS);
  // A gateway that is alone is not asked again and again.
  const [isAlone, setAlone] = useState(!hello.isOperator);
  const ask = async (signal: AbortSignal): Promise<ReplicasAnswer> => {
    if (isAlone) return { replicas: [] };
    const answer = await api.replicas(signal);
    setAlone(answer.replicas.length === 0);
    return answer;
  };
  const asked = useAsked(ask, [api, isAlone || now]);
  const { own, replicas = [] } = asked.value ?? {};
  if (replicas.length === 0) return null;
  const calls = replicas
    .flatMap(({ replica, recent }) => recent.map((call) => ({ replica, ...call })))
    .sort((a, b) => b.endedAt - a.endedAt)
    .slice(0, MOST_CALLS);
  const total = replicas.reduce((sum, { callsPerSecond }) => sum + callsPerSecond, 0);
  return (
    <section class="card stack" aria-labelledby="start-replicas">
      <h2 id="start-replicas">Replicas</h2>
      <p class="soft small">
        {showCount(replicas.length, "replica")}, {total.toFixed(1)} calls a second together
      </p>
      <ul class="lines">
        {replicas.map(({ replica, host, version, uptimeMs, callsPerSecond, errors, sources, state }) => (
          <li key={replica}>
            <Badge tone={state === "up" ? "ok" : "bad"} title="Whether it reaches what is shared.">
              {state}
            </Badge>
            <span class="mono cut">
              {visibleText(replica, 100)}
              {replica === own && " (this one)"}
            </span>
            <span class="soft small">
              {visibleText(host, 100)}, {visibleText(version, 40)}, for {showFor(uptimeMs)}, {callsPerSecond}{" "}
              calls a second, {showCount(errors, "error")}, {sources.up} of {showCount(sources.all, "source")}{" "}
              up
            </span>
          </li>
        ))}
      </ul>
      {calls.length > 0 && (
        <>
          <h3>Last calls of all</h3>
          <ul class="lines">
            {calls.map(({ replica, operation, outcome, code, endedAt }, at) => (
              <li key={at}>
                <Badge tone={outcome === "ok" ? "ok" : "bad"}>{code ?? outcome.replace("_", " ")}</Badge>
                <span class="mono cut">{visibleText(operation, 200)}</span>
                <span class="soft small">
                  at {visibleText(replica, 100)}, {showAgo(endedAt)}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

const MOST_CALLS = 8;

function LastCalls() {
  const live = useLive();
  const rows = live.rows.slice(-MOST_CALLS).reverse();
  return (
    <section class="card stack" aria-labelledby="start-calls">
      <header class="row">
        <h2 id="start-calls" class="grow">
          Last calls
        </h2>
        <a class="small" href={toHash("calls")}>
          All calls
        </a>
      </header>
      {rows.length === 0 ? (
        <Empty title="No calls yet.">
          <span>
            <a href={toHash("operations")}>Run an operation</a>, or connect a client.
          </span>
        </Empty>
      ) : (
        <ul class="lines">
          {rows.map((row) => (
            <CallLine key={row.seq} row={row} />
          ))}
        </ul>
      )}
    </section>
  );
}

function CallLine({ row }: { readonly row: CallRow }) {
  return (
    <li>
      <OutcomeBadge row={row} />
      <a class="mono cut" href={toHash("calls", row.seq)}>
        {visibleText(row.operation, 200)}
      </a>
      <span class="soft small">{showAgo(row.startedAt)}</span>
    </li>
  );
}
