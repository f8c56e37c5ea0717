import { type ComponentChildren, createContext } from "preact";
import { useContext, useLayoutEffect, useState } from "preact/hooks";
import type { Field } from "./field.ts";
import { isSameJson } from "./json-value.ts";
import type { Parsed } from "./parse-number.ts";
import type { PlacedIssue } from "./split-issues.ts";

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
    const text = textOf(event);
    const parsed = parse(text);
    setState({ text, value, ...parsed });
    if ("value" in parsed && !isSameJson(parsed.value, value)) update(pointer, parsed.value);
  };
  return { text: draft?.text ?? shown, problem, onInput };
}

/** Reads what is in an input. */
export function textOf(event: Event): string {
  return (event.currentTarget as HTMLInputElement).value;
}
