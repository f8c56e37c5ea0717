import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";

const FIRST = 10;
const MORE = 100;

/** A list of which the beginning is drawn, and more on demand. */
export function MoreList<T>({
  items,
  draw,
  label,
  first = FIRST,
}: {
  readonly items: readonly T[];
  readonly draw: (item: T, index: number) => ComponentChildren;
  /** For screen readers. */
  readonly label: string;
  /** Items that are drawn at first. @default 10 */
  readonly first?: number;
}) {
  const list = useRef<HTMLUListElement>(null);
  const [most, setMost] = useState(first);
  const left = items.length - most;
  const more = Math.min(left, MORE);
  const show = (): void => {
    setMost(most + more);
    // The button is about to go: whoever is at it stays nearby.
    if (left <= MORE) list.current?.focus();
  };
  return (
    <>
      <ul class="more-list" aria-label={label} tabIndex={-1} ref={list}>
        {items.slice(0, most).map((item, index) => (
          <li key={index}>{draw(item, index)}</li>
        ))}
      </ul>
      {left > 0 && (
        <button type="button" class="quiet small" onClick={show}>
          Show {left <= MORE ? "all" : `${MORE} more of`} {items.length.toLocaleString("en")}
        </button>
      )}
    </>
  );
}
