import { useId, useMemo, useState } from "preact/hooks";
import { showBytes, showCount } from "../parts/show.ts";
import {
  type ChoiceField,
  type FileField,
  type FixedField,
  isNamedFile,
  LONG,
  type NumberField,
  type SimpleField,
  type TextField,
} from "./field.ts";
import { Act, type ControlProps, Frame, fieldTitle } from "./field-frame.tsx";
import { base64Size, MOST_FILE_BYTES, readFile } from "./file-bytes.ts";
import {
  formJsonText,
  isSameJson,
  NEEDED,
  type Parsed,
  parseJson,
  parseNumber,
  showShort,
} from "./form-json.ts";
import { type DrawnProps, fieldText, useDraft, useForm } from "./form-tools.ts";

/** So many are a menu; more would make the page slow. */
const MENU = 2_000;

/** A field for one of some values. */
export function ChoiceControl(props: DrawnProps<ChoiceField | FixedField | SimpleField>) {
  const { value, pointer, isRequired, isItem } = props;
  const { update } = useForm();
  const options = [...optionsOf(props.field)];
  if (options.length > MENU) {
    return <RawControl {...props} why={`One of ${showCount(options.length, "value")}.`} />;
  }
  let chosen = value === undefined ? -1 : options.findIndex((option) => isSameJson(option.value, value));
  // An item of a list that nobody chose yet is `null`.
  if (chosen < 0 && value != null) {
    chosen = options.push({ label: `${showShort(value)} (not one of the values)`, value }) - 1;
  }
  return (
    <Frame {...props}>
      {(control) => (
        <Options
          {...{ control, chosen }}
          labels={options.map(({ label }) => label)}
          canUnset={!isRequired && !isItem}
          onChoose={(index) => update(pointer, options[index]?.value)}
        />
      )}
    </Frame>
  );
}

function optionsOf(field: ChoiceField | FixedField | SimpleField): ChoiceField["options"] {
  if (field.kind === "fixed") return [{ label: showShort(field.value), value: field.value }];
  const options =
    field.kind === "choice"
      ? field.options
      : [
          { label: "Yes", value: true },
          { label: "No", value: false },
        ];
  return field.isNullable ? [...options, { label: "null", value: null }] : options;
}

/** Some options of which one is chosen: radio buttons, or a menu when there are more than are seen at a glance. */
export function Options({
  control,
  labels,
  chosen,
  canUnset,
  onChoose,
}: {
  readonly control: ControlProps;
  readonly labels: readonly string[];
  /** Its index; -1 for none. */
  readonly chosen: number;
  readonly canUnset: boolean;
  /** Is told an index; -1 for none. */
  readonly onChoose: (index: number) => void;
}) {
  const areRadios = labels.length <= 4 && labels.join("").length <= 80;
  const entries = [...labels.entries()];
  if (canUnset || (chosen < 0 && !areRadios)) entries.unshift([-1, canUnset ? "Not set" : "Choose…"]);
  return areRadios ? (
    <div class="radios row" role="radiogroup" {...control}>
      {entries.map(([index, label]) => (
        <label key={index}>
          <input type="radio" name={control.id} checked={index === chosen} onChange={() => onChoose(index)} />
          {label}
        </label>
      ))}
    </div>
  ) : (
    <select {...control} value={chosen} onChange={(event) => onChoose(Number(fieldText(event)))}>
      {entries.map(([index, label]) => (
        <option key={index} value={index}>
          {label}
        </option>
      ))}
    </select>
  );
}

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

/** A field for bytes: a file of this computer. */
export function FileControl(props: DrawnProps<FileField>) {
  const { field, value, pointer, isItem } = props;
  const { update } = useForm();
  const [problem, setProblem] = useState<string>();
  const [chosen, setChosen] = useState("Base64 text");
  const named = isNamedFile(value) ? value : undefined;
  const base64 = named?.base64 ?? String(value ?? "");
  const remove = (): void => update(pointer, isItem ? (field.isNamed ? { base64: "" } : "") : undefined);
  const take = async (file: File): Promise<void> => {
    const read = await readFile(file);
    if ("problem" in read) return setProblem(read.problem);
    setProblem(undefined);
    setChosen(file.name);
    const { name: filename, type: contentType } = file;
    update(pointer, field.isNamed ? { ...read, filename, ...(contentType && { contentType }) } : read.base64);
  };
  return (
    <Frame {...props} problem={problem}>
      {(control) => (
        <>
          <input
            {...control}
            key={base64 === ""}
            type="file"
            accept={field.accept}
            onChange={({ currentTarget: { files } }) => files?.[0] && void take(files[0])}
          />
          <div class="row small soft break">
            {base64 === ""
              ? `No file yet; ${showBytes(MOST_FILE_BYTES)} at most.`
              : `${showShort(named?.filename ?? chosen)}, ${showBytes(base64Size(base64))}`}
            {base64 !== "" && (
              <Act label={`Remove the file of ${fieldTitle(props)}`} text="Remove" onClick={remove} />
            )}
          </div>
        </>
      )}
    </Frame>
  );
}

/** A field for any value, as JSON, kept as it is typed. */
export function RawControl(
  props: DrawnProps & {
    /** Why it is not asked for in another way. @default anything goes */
    readonly why?: string;
  },
) {
  const { value, isItem, why } = props;
  const [isAll, setAll] = useState(false);
  const json = useMemo(() => formJsonText(value), [value]);
  const isLong = json !== undefined && json.length > LONG && !isAll;
  const shown = isLong ? "" : json;
  const { text, problem, onInput } = useDraft(props, shown ?? "", (typed) =>
    isItem && typed.trim() === "" ? NEEDED : parseJson(typed),
  );
  return (
    <Frame {...props} problem={problem && `Not JSON yet, ${problem}`}>
      {(control) => (
        <>
          <textarea
            {...control}
            rows={Math.min(30, text.slice(0, 4_000).split("\n").length)}
            value={text}
            readOnly={isLong || json === undefined}
            placeholder={'JSON, such as "text", 12 or {"a": 1}'}
            spellcheck={false}
            onInput={onInput}
          />
          {json === undefined && <p class="soft small">Too deep to be shown; it stays as it is.</p>}
          {isLong && (
            <button type="button" onClick={() => setAll(true)}>
              Edit all {showBytes(json.length)}
            </button>
          )}
          {why !== undefined && <p class="soft small">{why}</p>}
        </>
      )}
    </Frame>
  );
}
