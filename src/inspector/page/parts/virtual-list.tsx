import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** A long list of which only what is seen is in the page. */
export interface VirtualListProps<T> {
  readonly items: readonly T[];
  /** Of each item, in pixels. */
  readonly height: number;
  readonly keyOf: (item: T) => string | number;
  readonly draw: (item: T, index: number) => ComponentChildren;
  /** Brought into view when it changes. @default nothing is */
  readonly reveal?: number | undefined;
  /** Drawn wherever it is, so that `aria-activedescendant` can name it. @default none is */
  readonly keep?: number | undefined;
  /** For roles and labels of the scrolled element. @default none */
  readonly attributes?: Readonly<Record<string, string | number | undefined>>;
  readonly onKeyDown?: ((event: KeyboardEvent) => void) | undefined;
}

const BEYOND = 6;

/** Draws the part of a list that is seen, and a few items beyond. */
export function VirtualList<T>(props: VirtualListProps<T>) {
  const { items, height, keyOf, draw, reveal, keep = -1, attributes = {}, onKeyDown } = props;
  const box = useRef<HTMLDivElement>(null);
  const { top, size } = useWindow(box);
  useReveal(box, reveal, height);
  const from = Math.max(0, Math.floor(top / height) - BEYOND);
  const to = Math.min(items.length, Math.ceil((top + size) / height) + BEYOND);
  const shown = items.slice(from, to).map((_, at) => from + at);
  if (keep >= 0 && keep < from) shown.unshift(keep);
  if (keep >= to && keep < items.length) shown.push(keep);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the caller gives the list a role
    <div class="virtual" ref={box} onKeyDown={onKeyDown} {...attributes}>
      <div class="extent" role="presentation" style={{ height: items.length * height }}>
        {shown.map((index) => {
          const item = items[index] as T;
          return (
            <div class="place" role="presentation" key={keyOf(item)} style={{ top: index * height, height }}>
              {draw(item, index)}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** What is seen of an element, followed as it is scrolled and resized. */
function useWindow(box: RefObject<HTMLDivElement>): { readonly top: number; readonly size: number } {
  const [seen, setSeen] = useState({ top: 0, size: 800 });
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const look = (): void => {
      const { scrollTop: top, clientHeight: size } = element;
      setSeen((old) => (old.top === top && old.size === size ? old : { top, size }));
    };
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      sizes.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, [box]);
  return seen;
}

function useReveal(box: RefObject<HTMLDivElement>, index: number | undefined, height: number): void {
  useEffect(() => {
    const element = box.current;
    if (element === null || index === undefined || index < 0) return;
    const { scrollTop, clientHeight } = element;
    const top = index * height;
    if (top < scrollTop) element.scrollTop = top;
    else if (top + height > scrollTop + clientHeight) element.scrollTop = top + height - clientHeight;
  }, [box, index, height]);
}

const PAGE = 10;

/** The place in a list that a key leads to; nothing where the key is not for moving. */
export function indexAfterKey(key: string, at: number, count: number): number | undefined {
  const places = new Map([
    ["ArrowDown", at + 1],
    ["ArrowUp", at - 1],
    ["PageDown", at + PAGE],
    ["PageUp", at - PAGE],
    ["Home", 0],
    ["End", count],
  ]);
  const wanted = places.get(key);
  return wanted === undefined ? undefined : Math.max(0, Math.min(count - 1, wanted));
}
