import { useMemo, useState } from "preact/hooks";
import type { OperationView, ResultView } from "../../protocol.ts";
import { Badge } from "../parts/badge.tsx";
import { Facts } from "../parts/facts.tsx";
import { listIn, prettyJson } from "../parts/json-text.ts";
import { JsonTree } from "../parts/json-tree.tsx";
import { counted, showMs } from "../parts/show.ts";
import { type Tab, Tabs } from "../parts/tabs.tsx";
import { visibleText } from "../parts/visible-text.ts";
import { ContentView } from "./content-view.tsx";
import { CopyAs } from "./copy-as.tsx";
import { DataPanel } from "./data-panel.tsx";
import { FormatsView } from "./formats-view.tsx";
import { HttpView } from "./http-view.tsx";
import "./result.css";
import { factsOf, obtainedWords, type ResultFacts, rawOf } from "./result-facts.ts";
import { Sheet } from "./sheet.tsx";

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
    <section class="result-panel stack" aria-label="Result">
      <ResultHead envelope={envelope} facts={facts} />
      <Tabs label="Sides of the result" tabs={tabs} chosen={chosen} onChoose={setChosen} />
      {operation !== undefined && <CopyAs operation={operation} input={input} />}
    </section>
  );
}

/** What came of a call, in one line, and the facts below it. */
function ResultHead({ envelope, facts }: Pick<ResultView, "envelope"> & { readonly facts: ResultFacts }) {
  const { isError, durationMs, attempts, obtained, changes, violations, told, details } = facts;
  return (
    <div class="stack tight">
      <div class="row small">
        <Badge tone={isError ? "bad" : "ok"}>{isError ? "the operation said no" : "ok"}</Badge>
        <Badge>{envelope.meta.source}</Badge>
        {durationMs !== undefined && <span>{showMs(durationMs)}</span>}
        {attempts !== undefined && <span>{counted(attempts, "attempt")}</span>}
        {obtained !== undefined && (
          <span class="soft break">data: {visibleText(obtainedWords(obtained), 200)}</span>
        )}
        {changes.length > 0 && <Badge tone="note">fitted to the schema: {changes.join(", ")}</Badge>}
        {violations > 0 && <Badge tone="bad">misses its schema in {counted(violations, "place")}</Badge>}
      </div>
      <Facts facts={told} />
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
