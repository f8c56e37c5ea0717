import { useId } from "preact/hooks";
import type { NumberField, TextField } from "./field.ts";
import { Frame } from "./field-frame.tsx";
import { type DrawnProps, useDraft } from "./form-tools.ts";
import { showShort } from "./json-value.ts";
import { type Parsed, parseNumber } from "./parse-number.ts";

/** A field for a text or a number; the browser's own input for numbers would drop digits and exponents. */
export function TextControl(props: DrawnProps<TextField | NumberField>) {
  const { field, value, isItem } = props;
  const listId = useId();
  const isNumber = field.kind === "number";
  const parse = isNumber ? parseNumber : parseText;
  const { text, problem, onInput } = useDraft(props, String(value ?? ""), (typed) => parse(typed, isItem));
  const examples = field.examples.map((each) => showShort(each, 200));
  const [example] = examples;
  const hint = isNumber ? (field.isInteger ? "whole number" : "number") : "";
  const shared = {
    value: text,
    placeholder: value === "" ? "empty text" : example === undefined ? hint : `e.g. ${example}`,
    autocomplete: "off",
    spellcheck: false,
    onInput,
  };
  const isBroken = !isNumber && (text.includes("\n") || (field.mayBreak && examples.length < 2));
  return (
    <Frame {...props} problem={problem}>
      {(control) =>
        isBroken ? (
          <textarea {...control} {...shared} class="plain" rows={Math.min(12, text.split("\n", 12).length)} />
        ) : (
          <>
            <input
              {...control}
              {...shared}
              {...(isNumber ? { inputMode: field.isInteger ? "numeric" : "decimal" } : typeOf(field, text))}
              list={examples.length > 1 ? listId : undefined}
            />
            {examples.length > 1 && <datalist id={listId}>{examples.map(toOption)}</datalist>}
          </>
        )
      }
    </Frame>
  );
}

/** An item may be empty; anything else that is empty is not there. */
function parseText(value: string, isItem = false): Parsed {
  return { value: value === "" && !isItem ? undefined : value };
}

function toOption(value: string) {
  return <option key={value} value={value} />;
}

/** The browser's own input for dates shows nothing else. */
function typeOf({ type }: TextField, text: string) {
  if (type === "email" || type === "url") return { inputMode: type };
  if (type === "password") return { type, autocomplete: "new-password" };
  const isDay = text === "" || (Date.parse(text) >= -6e13 && new Date(text).toISOString().startsWith(text));
  return { type: type === "date" && isDay && /^(.{10})?$/.test(text) ? "date" : "text" };
}
