import { Badge } from "./badge.tsx";
import type { PlacedMarks } from "./json-marks.ts";
import type { TreeRow } from "./json-rows.ts";
import { lineJson, shortJson } from "./json-text.ts";
import { isWebAddress, SafeLink } from "./safe-link.tsx";
import { counted } from "./show.ts";
import { cutText, visibleText } from "./visible-text.ts";

const CUT = 300;
const MOST_CHARACTERS = 100_000;
const KEY_CHARACTERS = 200;
const PREVIEW_CHARACTERS = 60;
const MOST_MARKS = 20;
const MARK_CHARACTERS = 160;

/** A row of a tree, and what the tree knows of it besides its value. */
export interface TreeNodeProps {
  readonly row: TreeRow;
  readonly placed: PlacedMarks;
  readonly isCurrent: boolean;
  readonly isWhole: boolean;
}

/** What is written in the row of a node. */
export function TreeNode({ row, placed, isCurrent, isWhole }: TreeNodeProps) {
  const { key, pointer, value, size, isOpen, left } = row;
  if (left > 0) return <span class="more">Show more of {counted(left, "member")} left</span>;
  const marks = placed.at.get(pointer) ?? [];
  const below = isOpen ? 0 : (placed.below.get(pointer) ?? 0);
  return (
    <>
      {key !== undefined && <NodeKey name={key} />}{" "}
      {size === undefined ? (
        <Leaf value={value} isCurrent={isCurrent} isWhole={isWhole} />
      ) : (
        <span class="soft">
          {counted(size, Array.isArray(value) ? "item" : "member")}
          {!isOpen && size > 0 && <span aria-hidden="true"> {shortJson(value, PREVIEW_CHARACTERS)}</span>}
        </span>
      )}
      {marks.slice(0, MOST_MARKS).map(({ tone, word, rest }) => [
        " ",
        <Badge tone={tone}>
          {rest !== "" && <bdi>{visibleText(rest, 60)}</bdi>} {visibleText(word, MARK_CHARACTERS)}
        </Badge>,
      ])}
      {marks.length > MOST_MARKS && ` ${counted(marks.length - MOST_MARKS, "mark")} more`}{" "}
      {below > 0 && <Badge>{counted(below, "mark")} inside</Badge>}
    </>
  );
}

function NodeKey({ name }: { readonly name: string | number }) {
  if (typeof name === "number") return <span class="soft">{name}:</span>;
  const text = /^[\w$.-]+$/.test(name) ? name : lineJson(name.slice(0, KEY_CHARACTERS));
  return (
    <span class="key">
      <bdi>{visibleText(text, KEY_CHARACTERS)}</bdi>:
    </span>
  );
}

function Leaf({
  value,
  isCurrent,
  isWhole,
}: Pick<TreeNodeProps, "isCurrent" | "isWhole"> & { readonly value: unknown }) {
  const tabIndex = isCurrent ? 0 : -1;
  if (typeof value !== "string") {
    return <span class={typeof value === "number" ? "number" : "word"}>{lineJson(value)}</span>;
  }
  if (isWebAddress(value)) return <SafeLink address={value} tabIndex={tabIndex} />;
  const most = isWhole ? MOST_CHARACTERS : CUT;
  return (
    <>
      <bdi class="text">
        {lineJson(cutText(value, most))}
        {value.length > most && "…"}
      </bdi>
      {/* A press on it is one on its row. */}
      {value.length > CUT && (
        <button type="button" class="quiet small" tabIndex={tabIndex}>
          {isWhole ? "Show less" : `Show more of ${counted(value.length, "character")}`}
        </button>
      )}
    </>
  );
}
