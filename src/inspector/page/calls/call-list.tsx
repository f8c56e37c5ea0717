import { useEffect, useId, useState } from "preact/hooks";
import type { CallRow } from "../../protocol.ts";
import { useSession } from "../page-session.ts";
import { Badge } from "../parts/controls.tsx";
import { showTime, visibleText } from "../parts/show.ts";
import { indexAfterKey, VirtualList } from "../parts/virtual-list.tsx";
import { navigate, toHash } from "../router.ts";
import { historyOf } from "./call-history.ts";
import { ENTRIES, notesOf, OUTCOMES, sizesOf, standingOf, timeOf } from "./call-words.ts";

const ROW_HEIGHT = 30;

/** The calls; arrow keys move through them, and Enter opens one. */
export function CallList(props: {
  /** Newest first. */
  readonly rows: readonly CallRow[];
  readonly chosen: number | undefined;
  /** Tells whether the newest are out of sight. */
  readonly onScrolled: (isScrolled: boolean) => void;
}) {
  const { rows, chosen, onScrolled } = props;
  const { live } = useSession();
  const id = useId();
  const [moved, setMoved] = useState<{ readonly seq: number; readonly index: number }>();
  const active = chosen ?? moved?.seq;
  const at = rows.findIndex(({ seq }) => seq === active);
  const choose = (seq: number): void => navigate(toHash("calls", seq), { replace: chosen !== undefined });
  const onKeyDown = (event: KeyboardEvent): void => {
    const isOpening = event.key === "Enter" || event.key === " ";
    const index = isOpening ? at : indexAfterKey(event.key, at, rows.length);
    const row = index === undefined ? undefined : rows[index];
    if (index === undefined || row === undefined) return;
    event.preventDefault();
    setMoved({ seq: row.seq, index });
    // A reader of calls moves on to the next one; a reader who searches opens one when it is found.
    if (isOpening || chosen !== undefined) choose(row.seq);
  };
  useEffect(() => () => onScrolled(false), []);
  return (
    <div
      class="call-list"
      onScrollCapture={({ target }) => onScrolled((target as HTMLElement).scrollTop > ROW_HEIGHT / 2)}
    >
      <div class="call-line head" aria-hidden="true">
        {["Time", "Operation", "Outcome", "Took", "Transport", "Caller", "Size", "Notes"].map((title) => (
          <span key={title}>{title}</span>
        ))}
      </div>
      <VirtualList
        items={rows}
        height={ROW_HEIGHT}
        keyOf={({ seq }) => seq}
        reveal={moved?.index}
        keep={at}
        attributes={{
          role: "listbox",
          tabIndex: 0,
          "aria-label": "Calls, newest first",
          "aria-activedescendant": at < 0 ? undefined : `${id}-${active}`,
        }}
        onKeyDown={onKeyDown}
        draw={(row) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the list has the keys and the focus
          <div
            class={`call-line${row.seq === active ? " is-active" : ""}`}
            role="option"
            id={`${id}-${row.seq}`}
            aria-selected={row.seq === chosen}
            onClick={() => choose(row.seq)}
          >
            <Cells row={latestOf(row, live.row(row.seq))} now={historyOf(live).clock()} />
          </div>
        )}
      />
    </div>
  );
}

/** A gateway that starts again counts from the start: the same number may be another call. */
function latestOf(row: CallRow, present: CallRow | undefined): CallRow {
  return present?.startedAt === row.startedAt ? present : row;
}

function Cells({ row, now }: { readonly row: CallRow; readonly now: number }) {
  const operation = visibleText(row.operation, 300);
  return (
    <>
      <span class="mono">{showTime(row.startedAt)}</span>
      <span class="mono" title={`${operation} ${visibleText(row.digest ?? "", 200)}`}>
        {row.parent !== undefined && "↳ "}
        <bdi>{operation}</bdi> <span class="soft">{visibleText(row.digest ?? "", 200)}</span>
      </span>
      <span>
        <OutcomeBadge row={row} />
      </span>
      <span>{timeOf(row, now)}</span>
      <span>{ENTRIES[row.entry ?? "none"]}</span>
      <bdi>{visibleText(row.subject ?? "anonymous", 60)}</bdi>
      <span>{sizesOf(row)}</span>
      <span>{notesOf(row)}</span>
    </>
  );
}

/** How a call stands, in a word and a sign. */
export function OutcomeBadge({ row }: { readonly row: CallRow }) {
  const { tone, sign, word } = OUTCOMES[standingOf(row)];
  return (
    <Badge tone={tone} sign={sign} title={visibleText(row.code ?? "", 100)}>
      {word}
    </Badge>
  );
}
