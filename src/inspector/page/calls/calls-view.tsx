import "./calls.css";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CallRow } from "../../protocol.ts";
import type { Live } from "../connection/live.ts";
import { toApiError, useAsked, useKeys, useRedraw, useSession } from "../page-session.ts";
import { CopyButton, Empty, Tabs } from "../parts/controls.tsx";
import { showCount, showSomeMs, visibleText } from "../parts/show.ts";
import { asCurl } from "../result/copy-as.tsx";
import { navigate, toHash } from "../router.ts";
import { byOperation, COLUMNS, type Figures, sortFigures } from "./call-buckets.ts";
import { CallDetail } from "./call-detail.tsx";
import { historyOf } from "./call-history.ts";
import { CallList } from "./call-list.tsx";
import { ENTRIES, OUTCOMES, standingOf } from "./call-words.ts";
import { Overview } from "./plot.tsx";

/** Which calls are listed, as the fields say; what is empty does not matter. */
export interface CallFilter {
  /** Words, all of which are in the operation, the request id, the code or the caller. */
  readonly text: string;
  readonly outcome: string;
  readonly source: string;
  readonly entry: string;
  /** Milliseconds. */
  readonly slower: string;
  /** Minutes: calls that began before are left out. */
  readonly within: string;
  /** A text in inputs and results, which the gateway looks for. */
  readonly inside: string;
}

/** Lists every call. */
export const NO_FILTER: CallFilter = {
  text: "",
  outcome: "",
  source: "",
  entry: "",
  slower: "",
  within: "",
  inside: "",
};

/** Makes the test of a filter; `found` are the calls that hold the text it looks for in inputs and results, and `now` is the present by the clock of the gateway, for calls that still run. */
export function toTest(
  filter: CallFilter,
  now: number,
  found?: ReadonlySet<number>,
): (row: CallRow) => boolean {
  const words = filter.text.toLowerCase().split(/\s+/);
  const { outcome, source, entry, slower, within, inside } = filter;
  const since = within === "" ? 0 : now - Number(within) * 60_000;
  return (row) =>
    (outcome === "" || standingOf(row) === outcome) &&
    (source === "" || row.source === source) &&
    (entry === "" || (row.entry ?? "none") === entry) &&
    row.startedAt >= since &&
    (inside.trim() === "" || found?.has(row.seq) === true) &&
    (slower === "" || (row.durationMs ?? now - row.startedAt) > Number(slower)) &&
    words.every((word) => textOf(row).includes(word));
}

/** Tells whether anything is left out. */
export function isFiltering(filter: CallFilter): boolean {
  return Object.values(filter).some((wanted) => wanted.trim() !== "");
}

/** Bounds what is read of one text. */
const MOST_CHARACTERS = 1_000;
const texts = new WeakMap<CallRow, string>();

function textOf(row: CallRow): string {
  let text = texts.get(row);
  if (text === undefined) {
    const parts = [row.operation, row.requestId, row.code ?? "", row.subject ?? ""];
    text = parts.map((part) => part.slice(0, MOST_CHARACTERS).toLowerCase()).join("\n");
    texts.set(row, text);
  }
  return text;
}

/** What was looked at last, for when the view is shown again. */
let kept: CallFilter = NO_FILTER;

/** Everything that passes through the gateway, as it happens. */
export function CallsView({ chosen }: { readonly chosen: string | undefined }) {
  const { hello, live } = useSession();
  const [filter, setFilter] = useState(kept);
  const [tab, setTab] = useState("list");
  useBeat();
  useKeys(leave);
  kept = filter;
  const seq = chosen === undefined ? undefined : Number(chosen);
  const choose = (text: string): void => {
    setFilter({ ...NO_FILTER, text });
    setTab("list");
  };
  const tabs = [
    {
      key: "list",
      label: "Calls",
      panel: () => <ListPanel chosen={seq} filter={filter} onFilter={setFilter} />,
    },
    { key: "operations", label: "By operation", panel: () => <OperationTable onChoose={choose} /> },
  ];
  const state = seq === undefined ? "" : " has-chosen";
  return (
    <div class={`calls${state}`}>
      <Overview />
      <div class={`split${state}`}>
        <section class="list-side" aria-label="List of calls">
          {!hello.isOperator && (
            <p class="told small">You see your own calls alone; the scope waybill:inspect shows all.</p>
          )}
          {live.dropped > 0 && (
            <p class="told small">{showCount(live.dropped, "call")} not shown: the page did not keep up.</p>
          )}
          <Tabs label="Ways to look at calls" tabs={tabs} chosen={tab} onChoose={setTab} />
        </section>
        {seq !== undefined && (
          <section class="detail-side" aria-label="The chosen call">
            <CallDetail key={seq} seq={seq} />
          </section>
        )}
      </div>
    </div>
  );
}

/** Leaves the call wherever the focus is; in a field, Escape belongs to the field. */
function leave({ key, target }: KeyboardEvent): void {
  const isField = target instanceof Element && target.matches("input, select, textarea");
  if (key === "Escape" && !isField) navigate(toHash("calls"));
}

interface FilterProps {
  readonly filter: CallFilter;
  readonly onFilter: (filter: CallFilter) => void;
}

/** The list of calls with its filters; it stands still while it is paused or scrolled. */
function ListPanel(props: FilterProps & { readonly chosen: number | undefined }) {
  const { chosen, filter, onFilter } = props;
  const calls = useHeldCalls(useSession().live, filter);
  const box = useRef<HTMLDivElement>(null);
  if (calls.held.length === 0) return <NoCalls />;
  const resume = (): void => {
    calls.setPaused(false);
    calls.setScrolled(false);
    box.current?.querySelector(".virtual")?.scrollTo(0, 0);
  };
  return (
    <div class="list-panel" ref={box}>
      <FilterBar filter={filter} onFilter={onFilter} calls={calls} />
      <Tools filter={filter} onFilter={onFilter} calls={calls} resume={resume} />
      {calls.rows.length === 0 ? (
        <Empty title="None of the calls held matches the filters.">
          <button type="button" onClick={() => onFilter(NO_FILTER)}>
            Show all calls
          </button>
        </Empty>
      ) : (
        <CallList rows={calls.rows} chosen={chosen} onScrolled={calls.setScrolled} />
      )}
    </div>
  );
}

const MOST_SOURCES = 200;
const TIMES = [
  ["1", "Last minute"],
  ["5", "Last 5 min"],
  ["15", "Last 15 min"],
  ["60", "Last hour"],
] as const;

function FilterBar({ filter, onFilter, calls }: FilterProps & { readonly calls: HeldCalls }) {
  const field = (name: keyof CallFilter, label: string) => ({
    "aria-label": label,
    value: filter[name],
    onInput: ({ currentTarget: { value } }: { readonly currentTarget: { readonly value: string } }) =>
      onFilter({ ...filter, [name]: value }),
  });
  const choice = (name: keyof CallFilter, label: string, options: readonly (readonly [string, string])[]) => (
    <select {...field(name, label)}>
      <option value="">Any {label.toLowerCase()}</option>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
  const sources = new Set(calls.held.flatMap(({ source = [] }) => source));
  return (
    <search class="filters row" aria-label="Which calls are listed">
      <input
        type="search"
        placeholder="Operation, request id, code, caller"
        {...field("text", "Find calls")}
      />
      {choice(
        "outcome",
        "Outcome",
        Object.entries(OUTCOMES).map(([key, { word }]) => [key, word]),
      )}
      {choice(
        "source",
        "Source",
        [...sources].slice(0, MOST_SOURCES).map((name) => [name, visibleText(name, 60)]),
      )}
      {choice("entry", "Transport", Object.entries(ENTRIES))}
      {choice("within", "Time", TIMES)}
      <input
        type="number"
        min="0"
        placeholder="Slower than ms"
        {...field("slower", "Slower than, in milliseconds")}
      />
      <input
        type="search"
        maxLength={200}
        placeholder="In inputs and results"
        {...field("inside", "Find in inputs and results")}
      />
    </search>
  );
}

function Tools(props: FilterProps & { readonly calls: HeldCalls; readonly resume: () => void }) {
  const { calls, resume, filter, onFilter } = props;
  const { rows, held, newer, isFinding, isPaused } = calls;
  return (
    <div class="list-tools row small">
      <span class="soft" role="status">
        {isFinding && "Searching… "}
        {isFiltering(filter) && `${rows.length.toLocaleString("en")} of `}
        {showCount(held.length, "call")}
      </span>
      {isFiltering(filter) && (
        <button type="button" class="quiet" onClick={() => onFilter(NO_FILTER)}>
          Clear filters
        </button>
      )}
      <span class="push" />
      {newer !== undefined && (
        <button type="button" class="quiet" onClick={resume}>
          <span aria-hidden="true">↑</span> {showCount(newer, "new call")}
        </button>
      )}
      <button type="button" class="quiet" onClick={isPaused ? resume : () => calls.setPaused(true)}>
        {isPaused ? "Resume" : "Pause"}
      </button>
    </div>
  );
}

/** Operations among which one without input is looked for. */
const MOST_TRIED = 8;

function isEmptyInput(sample: unknown): boolean {
  return sample !== undefined && JSON.stringify(sample) === "{}";
}

/** Says how to make a call when there was none. */
function NoCalls() {
  const { api, hello, live } = useSession();
  const { origin } = location;
  const { value: curl } = useAsked(
    async (signal) => {
      const { operations } = await api.operations(signal);
      const queries = operations.filter(({ type }) => type === "query").slice(0, MOST_TRIED);
      const all = await Promise.all(queries.map(({ id }) => api.operation(id, signal)));
      // One that asks for nothing works as it is.
      const operation = all.find(({ sample }) => isEmptyInput(sample)) ?? all[0];
      if (operation === undefined) return undefined;
      const input = operation.sample === undefined ? undefined : { value: operation.sample };
      // In one line: a text in the middle of a page has no room for more.
      return asCurl({ operation, input, hello, origin })?.replaceAll(" \\\n ", "");
    },
    [api, live.operations],
  );
  return (
    <Empty title="No calls yet.">
      <p>
        Calls appear here as they happen. <a href={toHash("operations")}>Run an operation</a>
        {curl === undefined ? "." : ", or call one from a shell:"}
      </p>
      {curl !== undefined && (
        <>
          <pre>{visibleText(curl, 2_000)}</pre>
          <CopyButton label="Copy" what="the command" text={() => curl} />
        </>
      )}
      {hello.places.mcp !== undefined && (
        <p>
          Clients of MCP connect to <code class="break">{`${origin}${hello.places.mcp}`}</code>
        </p>
      )}
    </Empty>
  );
}

const MOST = 500;

/** How the calls held went, operation by operation; choosing one lists its calls. */
function OperationTable({ onChoose }: { readonly onChoose: (operation: string) => void }) {
  const { rows } = useSession().live;
  const [column, setColumn] = useState(1);
  const figures = sortFigures(byOperation(rows), column);
  if (figures.length === 0) return <Empty title="No call has ended yet." />;
  return (
    <div class="operation-table scroll">
      <p class="soft small">
        Of the {showCount(rows.length, "call")} held here.
        {figures.length > MOST && ` The first ${MOST} operations.`}
      </p>
      <table class="data" aria-label="Figures by operation">
        <thead>
          <tr>
            {COLUMNS.map((title, index) => (
              <th
                key={title}
                scope="col"
                aria-sort={index !== column ? undefined : index === 0 ? "ascending" : "descending"}
              >
                <button type="button" class="quiet" onClick={() => setColumn(index)}>
                  {title}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {figures.slice(0, MOST).map((one) => (
            <Line key={one[0]} figures={one} onChoose={onChoose} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Line(props: { readonly figures: Figures; readonly onChoose: (operation: string) => void }) {
  const [operation, ...numbers] = props.figures;
  return (
    <tr>
      <th scope="row">
        <button type="button" class="quiet mono cut" onClick={() => props.onChoose(operation)}>
          <bdi>{visibleText(operation, 200)}</bdi>
        </button>
      </th>
      {numbers.map((value, index) => (
        <td key={index} class="number">
          {index < 2 ? value?.toLocaleString("en") : showSomeMs(value)}
        </td>
      ))}
    </tr>
  );
}

/** The calls that are listed, which stand still while the list is paused or scrolled. */
interface HeldCalls {
  /** Newest first. */
  readonly rows: readonly CallRow[];
  /** The calls before they were filtered. */
  readonly held: readonly CallRow[];
  /** How many calls came since the list stands still; nothing while it goes on. */
  readonly newer: number | undefined;
  /** Whether the gateway still looks for the text in inputs and results. */
  readonly isFinding: boolean;
  readonly isPaused: boolean;
  readonly setPaused: (isPaused: boolean) => void;
  readonly setScrolled: (isScrolled: boolean) => void;
}

/** Follows the calls of a page through a filter. */
function useHeldCalls(live: Live, filter: CallFilter): HeldCalls {
  const [isPaused, setPaused] = useState(false);
  const [isScrolled, setScrolled] = useState(false);
  const still = useRef<readonly CallRow[]>();
  const all = useMemo(() => live.rows.toSorted((left, right) => right.seq - left.seq), [live, live.calls]);
  const isStill = isPaused || isScrolled;
  still.current = isStill ? (still.current ?? all) : undefined;
  const held = still.current ?? all;
  const { found, isFinding } = useFound(filter.inside);
  const test = toTest(filter, historyOf(live).clock(), found);
  // What stands still is filtered anew for another filter alone: rows must not move under the pointer.
  const rows = useMemo(() => held.filter(test), [held, filter, found]);
  const last = held[0]?.seq ?? -1;
  const newer = isStill ? all.filter((row) => row.seq > last && test(row)).length : undefined;
  return { rows, held, newer, isFinding, isPaused, setPaused, setScrolled };
}

const FIND_AFTER_MS = 300;

/** Asks the gateway which calls hold a text in their input or result, once nobody types any more. */
function useFound(inside: string): { readonly found: ReadonlySet<number>; readonly isFinding: boolean } {
  const { api, say } = useSession();
  const [state, setState] = useState({ found: NOTHING, isFinding: false });
  useEffect(() => {
    const text = inside.trim();
    setState({ found: NOTHING, isFinding: text !== "" });
    if (text === "") return undefined;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      api.findCalls(text, stop.signal).then(
        ({ seqs }) => setState({ found: new Set(seqs), isFinding: false }),
        (thrown: unknown) => {
          if (stop.signal.aborted) return;
          setState({ found: NOTHING, isFinding: false });
          say(toApiError(thrown).message);
        },
      );
    }, FIND_AFTER_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [inside]);
  return state;
}

const NOTHING: ReadonlySet<number> = new Set();

const LEAST_MS = 250;

/** Draws the component again when something happens, at most four times a second, and every second while nothing does. */
function useBeat(): void {
  const { live } = useSession();
  const [, draw] = useRedraw();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const beat = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        draw();
      }, LEAST_MS);
    };
    const stop = live.onChange(beat);
    const idle = setInterval(beat, 1_000);
    return () => {
      stop();
      clearInterval(idle);
      clearTimeout(timer);
    };
  }, [live]);
}
