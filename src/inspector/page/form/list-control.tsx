import { useMemo, useState } from "preact/hooks";
import { joinPointer, listIn } from "../parts/json-text.ts";
import { counted } from "../parts/show.ts";
import type { ListField } from "./field.ts";
import { Act, titleOf } from "./field-frame.tsx";
import { type DrawnProps, useForm } from "./form-tools.ts";
import { AddRow, GroupFrame } from "./group-frame.tsx";
import { firstValue, initialValue } from "./initial-value.ts";
import { SchemaField } from "./schema-field.tsx";
import { issuesElsewhere, NO_ISSUES, type PlacedIssue, splitIssues } from "./split-issues.ts";
import { FIRST, useFocus } from "./use-focus.ts";

/** Items that are drawn at a time. */
const PAGE = 50;

/** A group of the items of a list, a page of them at a time. */
export function ListControl(props: DrawnProps<ListField>) {
  const { field, value, isRequired, isBare, issues } = props;
  const { own, below } = useMemo(() => splitIssues(issues), [issues]);
  const { items, from, to, setPage, change, start, add, place } = useItems(props);
  if (value === undefined && !isRequired && !isBare) return <AddRow {...props} onAdd={start} place={place} />;
  const title = titleOf(props);
  return (
    <GroupFrame
      {...props}
      issues={[...own, ...issuesElsewhere(below, (each) => Number(each) >= from && Number(each) < to)]}
      note={counted(items.length, "item")}
      onRemove={() => change(undefined, 0, "")}
      place={place}
    >
      {items.slice(from, to).map((_, at) => {
        const index = from + at;
        return (
          <Item
            key={index}
            {...{ props, items, index, change }}
            issues={below.get(String(index)) ?? NO_ISSUES}
          />
        );
      })}
      <div class="row">
        <button type="button" data-add disabled={items.length >= field.max} onClick={add}>
          <span aria-hidden="true">+</span> Add item<span class="hidden-text"> to {title}</span>
        </button>
        {items.length > PAGE && <Turns {...{ from, to, title, setPage }} count={items.length} />}
      </div>
    </GroupFrame>
  );
}

/** Leads to the items before and after those that are drawn. */
function Turns({
  from,
  to,
  count,
  title,
  setPage,
}: {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /** What the list is called. */
  readonly title: string;
  readonly setPage: (page: number) => void;
}) {
  const turn = (text: string, next: number) => (
    <button
      type="button"
      disabled={next < 0 || next * PAGE >= count}
      aria-label={`${text} items of ${title}`}
      onClick={() => setPage(next)}
    >
      {text}
    </button>
  );
  return (
    <>
      {turn("Earlier", from / PAGE - 1)}
      <span class="small soft">
        {from + 1} to {to}
      </span>
      {turn("Later", from / PAGE + 1)}
    </>
  );
}

/** Puts other items in the place of the present ones, shows one of them, and focuses what a selector finds. */
type Change = (next: readonly unknown[] | undefined, shown: number, focused: string) => void;

/** The items of a list, and what can be done with them. */
function useItems({ field, value, pointer, schema }: DrawnProps<ListField>) {
  const { root, update } = useForm();
  const [page, setPage] = useState(0);
  const [place, focus] = useFocus();
  const items = listIn(value);
  const count = items.length;
  const from = Math.min(page, Math.max(0, Math.ceil(count / PAGE) - 1)) * PAGE;
  const change: Change = (next, shown, focused) => {
    update(pointer, next);
    setPage(Math.floor(shown / PAGE));
    focus(focused);
  };
  const add = (): void => {
    const item = firstValue(field.first[count] ?? field.items, root);
    change([...items, item], count, `[data-item="${count}"] :is(${FIRST})`);
  };
  const start = (): void => {
    const made = initialValue(schema, root);
    if (Array.isArray(made) && made.length > 0) change(made, 0, FIRST);
    else if (field.max > 0) add();
    else update(pointer, []);
  };
  return { items, from, to: Math.min(from + PAGE, count), setPage, change, start, add, place };
}

interface ItemProps {
  readonly items: readonly unknown[];
  readonly index: number;
  readonly change: Change;
  readonly props: DrawnProps<ListField>;
  readonly issues: readonly PlacedIssue[];
}

function Item({ items, index, change, props: { field, pointer, depth }, issues }: ItemProps) {
  const rest = items.toSpliced(index, 1);
  const to = index - 1;
  return (
    <div class="item-row" data-item={index}>
      <SchemaField
        {...{ issues, schema: field.first[index] ?? field.items, value: items[index] }}
        pointer={joinPointer(pointer, index)}
        name={`Item ${index + 1}`}
        isRequired
        isItem
        depth={depth + 1}
      />
      <div class="item-acts">
        <Act
          label={`Move item ${index + 1} up`}
          text="↑"
          disabled={to < 0}
          onClick={() =>
            change(
              rest.toSpliced(to, 0, items[index]),
              to,
              `[data-item="${to}"] > .item-acts > :nth-child(${to > 0 ? 1 : 2})`,
            )
          }
        />
        <Act label={`Remove item ${index + 1}`} text="✕" onClick={() => change(rest, index, "[data-add]")} />
      </div>
    </div>
  );
}
