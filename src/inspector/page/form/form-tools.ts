import { type ComponentChildren, createContext } from "preact";
import { useContext, useLayoutEffect, useRef, useState } from "preact/hooks";
import { parsePointer } from "../../../core/json/json-pointer.ts";
import type { IssueView } from "../../protocol.ts";
import type { Field } from "./field.ts";
import { isSameJson, type Parsed } from "./form-json.ts";

/** What every field of a form works with; the same for as long as the schema is. */
export interface FormTools {
  /** The whole schema, for references. */
  readonly root: unknown;
  /** Sets the value at a JSON pointer; `undefined` takes it away. */
  readonly update: (pointer: string, value: unknown) => void;
  /** Says that what was typed at a pointer is no value, or is one again. */
  readonly report: (pointer: string, problem: string | undefined) => void;
}

export const FormContext = createContext({} as FormTools);

/** The tools of the form around. */
export function useForm(): FormTools {
  return useContext(FormContext);
}

/** What a field draws. */
export interface FieldProps {
  readonly schema: unknown;
  /** `undefined` where nothing is set. */
  readonly value: unknown;
  readonly pointer: string;
  /** What the field is called, unless its schema says it better. */
  readonly name: string;
  /** Whether there has to be a value. */
  readonly isRequired: boolean;
  /** Whether this is an item or a member that goes only when it is taken away: an empty text is a text there. @default false */
  readonly isItem?: boolean;
  /** Whether a group is drawn without a head of its own. @default false */
  readonly isBare?: boolean;
  readonly issues: readonly PlacedIssue[];
  /** How many fields this one is in. */
  readonly depth: number;
}

/** What a control of some kind draws. */
export interface DrawnProps<F extends Field = Field> extends FieldProps {
  readonly field: F;
  /** The button that makes it `null`. @default none */
  readonly nullAct?: ComponentChildren;
}

interface Draft {
  readonly text: string;
  /** The value that it was typed for. */
  readonly value: unknown;
  readonly problem?: string;
}

/** Keeps a text as it is typed, with why it is no value, and takes over its value whenever it has one. */
export function useDraft(
  { pointer, value }: FieldProps,
  shown: string,
  parse: (text: string) => Parsed,
): { readonly text: string; readonly problem: string | undefined; readonly onInput: (event: Event) => void } {
  const { update, report } = useForm();
  const [state, setState] = useState<Draft>();
  const draft = state && isSameJson(state.value, value) ? state : undefined;
  const problem = draft?.problem;
  useLayoutEffect(() => {
    report(pointer, problem);
    return () => report(pointer, undefined);
  }, [report, pointer, problem]);
  const onInput = (event: Event): void => {
    const text = fieldText(event);
    const parsed = parse(text);
    setState({ text, value, ...parsed });
    if ("value" in parsed && !isSameJson(parsed.value, value)) update(pointer, parsed.value);
  };
  return { text: draft?.text ?? shown, problem, onInput };
}

/** Reads what is in an input. */
export function fieldText(event: Event): string {
  return (event.currentTarget as HTMLInputElement).value;
}

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

/** An issue as one field sees it. */
export interface PlacedIssue {
  /** The way to it from the field; empty for the field's own. */
  readonly path: readonly string[];
  readonly expected: string;
  readonly found: string;
}

/** The same list every time, so that fields without issues stay as they are. */
export const NO_ISSUES: readonly PlacedIssue[] = [];

/** As many as anybody reads. */
const MOST = 500;

/** Takes the issues of a whole input, as its outermost field sees them. */
export function placeIssues(issues: readonly IssueView[]): readonly PlacedIssue[] {
  if (issues.length === 0) return NO_ISSUES;
  return issues
    .slice(0, MOST)
    .map(({ pointer, expected, found }) => ({ path: parsePointer(pointer), expected, found }));
}

/** Parts the issues of a field from those of what is in it, by name. */
export function splitIssues(issues: readonly PlacedIssue[]): {
  readonly own: readonly PlacedIssue[];
  readonly below: ReadonlyMap<string, readonly PlacedIssue[]>;
} {
  const own: PlacedIssue[] = [];
  const below = new Map<string, PlacedIssue[]>();
  for (const issue of issues) {
    const [name, ...path] = issue.path;
    if (name === undefined) own.push(issue);
    else if (below.has(name)) below.get(name)?.push({ ...issue, path });
    else below.set(name, [{ ...issue, path }]);
  }
  return { own, below };
}

/** Those of what is not drawn, for the nearest field that is: its own, with the way to them. */
export function issuesElsewhere(
  below: ReadonlyMap<string, readonly PlacedIssue[]>,
  isDrawn: (name: string) => boolean,
): readonly PlacedIssue[] {
  return [...below]
    .filter(([name]) => !isDrawn(name))
    .flatMap(([name, issues]) => issues.map((issue) => ({ ...issue, path: [name, ...issue.path] })));
}
