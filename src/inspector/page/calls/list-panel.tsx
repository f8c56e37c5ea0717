import { useRef } from "preact/hooks";
import { Empty } from "../parts/notice.tsx";
import { counted } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import { useSession } from "../session.ts";
import { type CallFilter, isFiltering, NO_FILTER } from "./call-filter.ts";
import { CallList } from "./call-list.tsx";
import { ENTRIES, OUTCOMES } from "./call-words.ts";
import { NoCalls } from "./no-calls.tsx";
import { type HeldCalls, useHeldCalls } from "./use-held-calls.ts";

interface FilterProps {
  readonly filter: CallFilter;
  readonly onFilter: (filter: CallFilter) => void;
}

/** The list of calls with its filters; it stands still while it is paused or scrolled. */
export function ListPanel(props: FilterProps & { readonly chosen: number | undefined }) {
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
      {choice("entry", "Way in", Object.entries(ENTRIES))}
      <input
        type="number"
        min="0"
        placeholder="Slower than ms"
        {...field("slower", "Slower than, in milliseconds")}
      />
    </search>
  );
}

function Tools(props: FilterProps & { readonly calls: HeldCalls; readonly resume: () => void }) {
  const { calls, resume, filter, onFilter } = props;
  const { rows, held, newer, isPaused } = calls;
  return (
    <div class="list-tools row small">
      <span class="soft">
        {isFiltering(filter) && `${rows.length.toLocaleString("en")} of `}
        {counted(held.length, "call")}
      </span>
      {isFiltering(filter) && (
        <button type="button" class="quiet" onClick={() => onFilter(NO_FILTER)}>
          Clear filters
        </button>
      )}
      <span class="push" />
      {newer !== undefined && (
        <button type="button" class="quiet" onClick={resume}>
          <span aria-hidden="true">↑</span> {counted(newer, "new call")}
        </button>
      )}
      <button type="button" class="quiet" onClick={isPaused ? resume : () => calls.setPaused(true)}>
        {isPaused ? "Resume" : "Pause"}
      </button>
    </div>
  );
}
