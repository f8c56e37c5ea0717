import { isObject } from "../../../core/schema/json-schema.ts";
import "./result.css";
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type {
  CallFailure,
  DifferenceView,
  EnvelopeView,
  FormatView,
  OperationView,
  ResultView,
} from "../../protocol.ts";
import { FORMAT_WORDS } from "../decode/decode-words.ts";
import { isSameJson } from "../form/form-json.ts";
import { useAsked, useSession } from "../page-session.ts";
import { Badge, Facts, MoreList, PendingNotice, type Tab, Tabs } from "../parts/controls.tsx";
import { JsonTree, type TreeMarks } from "../parts/json-tree.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { showBytes, showCount, showMs, visibleText } from "../parts/show.ts";
import { listIn, membersIn, prettyJson, shownText } from "../parts/show-json.ts";
import { ChartView, chartOf } from "./chart-view.tsx";
import { bytesOf, ContentView, MediaView, mediaOf, mediaOfBlock, Sheet } from "./content-view.tsx";
import { CopyAs } from "./copy-as.tsx";
import { factsOf, obtainedWords, type ResultFactsView, rawOf } from "./result-facts.ts";
import { rowsOf, TableView } from "./table-view.tsx";

/** One result, from all sides. */
export function ResultPanel({
  result,
  operation,
  input,
}: {
  readonly result: ResultView;
  /** The operation that answered; with it, the call can be copied. @default not known */
  readonly operation?: OperationView | undefined;
  /** @default a call without input */
  readonly input?: { readonly value: unknown } | undefined;
}) {
  const { envelope } = result;
  const [chosen, setChosen] = useState("data");
  const facts = useMemo(() => factsOf(envelope), [envelope]);
  const marks = useMemo(() => new Map([...facts.marks].map(([at, told]) => [`/data${at}`, told])), [facts]);
  const tabs: Tab[] = [
    { key: "data", label: "Data", panel: () => <DataPanel envelope={envelope} marks={facts.marks} /> },
    {
      key: "envelope",
      label: "Envelope",
      panel: () => <JsonTree value={envelope} label="Envelope" marks={marks} openDepth={3} />,
    },
    ...sourceTabs(result),
    { key: "raw", label: "Raw", panel: () => <RawView result={result} /> },
    {
      key: "formats",
      label: "Formats",
      panel: () => <FormatsView envelope={envelope} operation={operation?.id} />,
    },
  ];
  return (
    <section class="result-panel card stack" aria-label="Result">
      <ResultHead envelope={envelope} facts={facts} />
      <Tabs label="Sides of the result" tabs={tabs} chosen={chosen} onChoose={setChosen} />
      {operation !== undefined && <CopyAs operation={operation} input={input} />}
    </section>
  );
}

/** What came of a call, in one line, and the facts below it. */
function ResultHead({ envelope, facts }: Pick<ResultView, "envelope"> & { readonly facts: ResultFactsView }) {
  const { isError, durationMs, attempts, obtained, changes, violations, told, details } = facts;
  return (
    <div class="stack tight">
      <div class="row small">
        <Badge tone={isError ? "warn" : "ok"} sign={isError ? "!" : "✓"}>
          {isError ? "tool error" : "ok"}
        </Badge>
        <Badge>{envelope.meta.source}</Badge>
        {durationMs !== undefined && <span>{showMs(durationMs)}</span>}
        {attempts !== undefined && <span>{showCount(attempts, "attempt")}</span>}
        {obtained !== undefined && (
          <span class="soft break">data: {visibleText(obtainedWords(obtained), 200)}</span>
        )}
        {changes.length > 0 && <Badge tone="note">fitted to the schema: {changes.join(", ")}</Badge>}
        {violations > 0 && <Badge tone="bad">misses its schema in {showCount(violations, "place")}</Badge>}
      </div>
      <Facts facts={told} />
      <Said details={details?.value} />
      {details !== undefined && (
        <details>
          <summary>Details</summary>
          <JsonTree value={details.value} label="Details" />
        </details>
      )}
    </div>
  );
}

/** What only results of one source have. */
function sourceTabs({ envelope: { meta } }: ResultView): readonly Tab[] {
  if (meta.source === "http") return [{ key: "http", label: "HTTP", panel: () => <HttpView meta={meta} /> }];
  if (meta.source !== "mcp") return [];
  const blocks = listIn(meta["content"]);
  const label = `Content (${blocks.length.toLocaleString("en")})`;
  return [{ key: "content", label, panel: () => <ContentView blocks={blocks} /> }];
}

function RawView({ result }: { readonly result: ResultView }) {
  const text = useMemo(() => prettyJson(rawOf(result)), [result]);
  return <Sheet label="Raw answer" text={text} file="raw.json" />;
}

const MOST_OTHERS = 4;

/** The data of a result, in the way that suits it, and in the others that it allows. */
function DataPanel({ envelope, marks }: { readonly envelope: EnvelopeView; readonly marks: TreeMarks }) {
  const { data, meta } = envelope;
  const bytes = bytesOf(data);
  const { blocks, rows, chart } = useMemo(() => sidesOf(envelope), [envelope]);
  const [wanted, setWay] = useState("");
  const ways = new Map<string, ComponentChildren>();
  if (bytes !== undefined)
    ways.set("Media", <MediaView media={mediaOf(bytes, meta["contentType"], "Data")} />);
  else if (blocks !== undefined) ways.set("Blocks", <ContentView blocks={blocks} />);
  if (typeof data === "string") ways.set("Text", <Sheet label="Data as text" text={data} file="data.txt" />);
  const tree = <JsonTree value={data} label="Data" marks={marks} />;
  // A list among many other members is not what the data is about.
  if (rows !== undefined && rows.others > MOST_OTHERS) ways.set("Tree", tree);
  if (rows !== undefined) ways.set("Table", <TableView rows={rows} />);
  if (chart !== undefined) ways.set("Chart", <ChartView chart={chart} />);
  ways.set("Tree", tree);
  const titles = [...ways.keys()];
  const way = ways.has(wanted) ? wanted : (titles[0] ?? "");
  return (
    <div class="stack tight">
      {titles.length > 1 && (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields
        <div class="ways" role="group" aria-label="Show the data as">
          {titles.map((title) => (
            <button type="button" key={title} aria-pressed={title === way} onClick={() => setWay(title)}>
              {title}
            </button>
          ))}
        </div>
      )}
      {ways.get(way)}
    </div>
  );
}

/** What the data can be shown as. Content blocks are no table, whatever members they share. */
function sidesOf({ data, meta: { source, content } }: EnvelopeView) {
  const isContent =
    Array.isArray(data) &&
    data.length > 0 &&
    (data.every(isBlock) || (source === "mcp" && isSameJson(data, content)));
  if (isContent) return { blocks: data };
  // What can be seen or heard is shown with the text around it.
  const blocks = Array.isArray(content) && content.some(isSeen) ? content : undefined;
  return { blocks, rows: rowsOf(data), chart: chartOf(data) };
}

/** Types with the member that such a block has. */
const BLOCK = /^(?:text text|(?:image|audio) data|resource resource|resource_link uri)$/;

function isBlock(value: unknown): boolean {
  return (
    isObject(value) && Object.keys(value).some((key) => BLOCK.test(`${shownText(value["type"])} ${key}`))
  );
}

function isSeen(block: unknown): boolean {
  return (mediaOfBlock(block, 0)?.kind ?? "file") !== "file";
}

/** How a result reads in each format, what each would lose, and what it would make up. */
function FormatsView({
  envelope,
  operation,
}: {
  readonly envelope: EnvelopeView;
  /** The id of the operation that answered. @default none */
  readonly operation?: string | undefined;
}) {
  const { api } = useSession();
  const asked = useAsked((signal) => api.formats(envelope, operation, signal), [api, envelope, operation]);
  return (
    <div class="formats">
      <PendingNotice {...asked} what="how it reads in each format" />
      {asked.value?.formats.map((view) => (
        <Format key={view.format} view={view} />
      ))}
    </div>
  );
}

function Format({ view: { format, encoded, refused, bytes, lost, madeUp } }: { readonly view: FormatView }) {
  const text = useMemo(() => prettyJson(encoded), [encoded]);
  const name = FORMAT_WORDS[format];
  const count = lost.length;
  return (
    <section class="card stack tight" aria-label={name}>
      <div class="row">
        <h3>{name}</h3>
        {bytes !== undefined && <span class="soft small">{showBytes(bytes)}</span>}
        {refused === undefined && (
          <Badge tone={count === 0 ? "ok" : "warn"}>
            {count === 0 ? "loses nothing" : `loses ${showCount(count, "thing")}`}
          </Badge>
        )}
      </div>
      {refused !== undefined && <p class="notice warn small">{visibleText(refused, 500)}</p>}
      <Differences title="Lost" items={lost} />
      <Differences title="Made up" items={madeUp} />
      {encoded !== undefined && (
        <Sheet label={`Result as ${name}`} text={text} file={`result.${format}.json`} />
      )}
    </section>
  );
}

function Differences({
  title,
  items,
}: {
  readonly title: string;
  readonly items: readonly DifferenceView[];
}) {
  return items.length === 0 ? null : (
    <>
      <h4>{title}</h4>
      <MoreList
        items={items}
        label={title}
        draw={({ pointer, text }) => (
          <div class="break small">
            <code>{visibleText(pointer, 120)}</code> <span class="soft">{visibleText(text, 80)}</span>
          </div>
        )}
      />
    </>
  );
}

const MOST_HEADERS = 300;

/** What an HTTP answer said besides its body. */
function HttpView({ meta }: { readonly meta: Readonly<Record<string, unknown>> }) {
  const { statusCode, contentType, headers, setCookie } = meta;
  const listed: readonly (readonly [string, unknown])[] = [
    ...Object.entries(membersIn(headers)),
    ...listIn(setCookie).map((cookie): [string, unknown] => ["set-cookie", cookie]),
  ];
  const status = Number(shownText(statusCode));
  return (
    <Facts
      facts={[
        [
          "Status",
          <Badge tone={status >= 400 ? "bad" : status >= 300 ? "warn" : "ok"}>
            {visibleText(shownText(statusCode), 40)}
          </Badge>,
        ],
        ["Content type", shownText(contentType ?? "")],
        ...listed
          .slice(0, MOST_HEADERS)
          .map(([name, value]) => [visibleText(name, 200), shownText(value)] as const),
      ]}
    />
  );
}

interface FailurePanelProps {
  readonly error: CallFailure;
  /** Where nothing beside it says how long the call took. */
  readonly durationMs?: number | undefined;
}

/** A call that never ran or broke, and what can be done about it. */
export function FailurePanel({ error, durationMs }: FailurePanelProps) {
  return (
    <section class="card stack" aria-label="Error">
      <div class="notice bad">
        <div class="row">
          <Badge tone="bad" sign="✕">
            failed
          </Badge>
          <strong class="mono break">{visibleText(error.code, 200)}</strong>
          {durationMs !== undefined && <span class="small">{showMs(durationMs)}</span>}
          {error.retryable && <Badge tone="warn">trying again may help</Badge>}
          {error.correctable && <Badge tone="warn">the input can be corrected</Badge>}
        </div>
        <p>
          <PlainText text={error.message} />
        </p>
      </div>
      <Said details={error.details} />
      {error.details !== undefined && <JsonTree value={error.details} label="Details of the error" />}
    </section>
  );
}

/** What the source said where the details of an error or a result hold it: its words, and not ours. */
function Said({ details }: { readonly details: unknown }) {
  const said = saidIn(details);
  if (said === undefined) return null;
  return (
    <figure>
      <figcaption class="soft small">The source said</figcaption>
      <blockquote>
        <PlainText text={said} />
      </blockquote>
    </figure>
  );
}

function saidIn(details: unknown): string | undefined {
  const { said } = (typeof details === "object" && details !== null ? details : {}) as { said?: unknown };
  return typeof said === "string" ? said : undefined;
}
