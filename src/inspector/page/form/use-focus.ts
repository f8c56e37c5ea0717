import { useLayoutEffect, useRef } from "preact/hooks";

/** Takes the place that focus is looked for in, as a `ref`. */
export type FocusRef = (element: HTMLElement | null) => void;

/** Puts the focus on something that the next drawing brings: what had it may be gone by then. `""` is the place itself. */
export function useFocus(): readonly [place: FocusRef, focus: (selector: string) => void] {
  const now = useRef<{ place?: HTMLElement | null; wanted?: string | undefined }>({}).current;
  useLayoutEffect(() => {
    const { place, wanted } = now;
    now.wanted = undefined;
    if (wanted !== undefined) (wanted === "" ? place : place?.querySelector<HTMLElement>(wanted))?.focus();
  });
  return [
    (element) => {
      now.place = element;
    },
    (selector) => {
      now.wanted = selector;
    },
  ];
}

/** The first thing in a group that can be filled in. */
export const FIRST = "input, select, textarea, button";
