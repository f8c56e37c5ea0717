import "./form.css";
import { useId, useMemo, useRef, useState } from "preact/hooks";
import type { IssueView, JsonSchemaView } from "../../protocol.ts";
import { showCount } from "../parts/show.ts";
import { setAt } from "./form-json.ts";
import { FormContext, type FormTools, placeIssues } from "./form-tools.ts";
import { readSchema } from "./read-schema.ts";
import { SchemaField } from "./schema-field.tsx";
import { RawControl } from "./value-controls.tsx";

/** What an editor of an input works with. */
export interface InputEditorProps {
  /** Anything goes when there is none. */
  readonly schema: JsonSchemaView | undefined;
  /** `undefined` for no input; values are replaced, never changed. */
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  /** Shown at the fields they belong to. */
  readonly issues: readonly IssueView[];
  /** For Ctrl+Enter and Cmd+Enter. @default nothing happens */
  readonly onRun?: (() => void) | undefined;
  /** Is told what was typed that is no value, and nothing once it is one again; `value` is the last one that was. */
  readonly onInvalid?: ((message: string | undefined) => void) | undefined;
  /** For screen readers. @default "Input" */
  readonly label?: string | undefined;
}

/** An input, filled in as a form or written as JSON. */
export function InputEditor(props: InputEditorProps) {
  const { schema, value, issues, onRun, label = "Input" } = props;
  const [isJson, setJson] = useState(false);
  const { tools, problem } = useTools(props);
  const hasForm = schema !== undefined && readSchema(schema, schema).kind !== "json";
  const shared = { value, pointer: "", issues: useMemo(() => placeIssues(issues), [issues]) };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || onRun === undefined) return;
    event.preventDefault();
    onRun();
  };
  return (
    <fieldset class="bare stack form" aria-label={label} onKeyDown={onKeyDown}>
      {hasForm && (
        <div class="row">
          <Segments {...{ label, isJson }} isFixed={problem !== undefined} onChoose={setJson} />
          <span class="soft small" role="status">
            {problem !== undefined
              ? "Put right what is marked first."
              : issues.length > 0 && `${showCount(issues.length, "problem")} in the input.`}
          </span>
        </div>
      )}
      <FormContext.Provider value={tools}>
        {hasForm && !isJson ? (
          <SchemaField {...shared} schema={schema} name={label} isRequired isBare depth={0} />
        ) : (
          <RawControl
            {...shared}
            schema
            field={readSchema(true, true)}
            name={`${label} as JSON`}
            isRequired={false}
            depth={-1}
          />
        )}
      </FormContext.Provider>
    </fieldset>
  );
}

/** Form or JSON; what cannot be read in one of them cannot be shown in the other. */
function Segments(props: {
  readonly label: string;
  readonly isJson: boolean;
  readonly isFixed: boolean;
  readonly onChoose: (isJson: boolean) => void;
}) {
  const id = useId();
  return (
    <div class="segments" role="radiogroup" aria-label={`${props.label} as`}>
      {["Form", "JSON"].map((each, at) => (
        <label key={each}>
          <input
            type="radio"
            name={id}
            checked={props.isJson === at > 0}
            disabled={props.isJson !== at > 0 && props.isFixed}
            onChange={() => props.onChoose(at > 0)}
          />
          {each}
        </label>
      ))}
    </div>
  );
}

/** What the fields work with, and the first of what was typed that is no value. */
function useTools({ schema, value, onChange, onInvalid }: InputEditorProps): {
  readonly tools: FormTools;
  readonly problem: string | undefined;
} {
  // Several fields may change before the form is drawn again.
  const now = useRef({ value, onChange, onInvalid });
  now.current = { value, onChange, onInvalid };
  const problems = useRef(new Map<string, string>()).current;
  const [problem, setProblem] = useState<string>();
  const tools = useMemo<FormTools>(() => {
    const update = (pointer: string, part: unknown): void => {
      const next = setAt(now.current.value, pointer, part);
      now.current.value = next;
      now.current.onChange(next);
    };
    const report = (pointer: string, message: string | undefined): void => {
      if (problems.get(pointer) === message) return;
      if (message === undefined) problems.delete(pointer);
      else problems.set(pointer, message);
      const [first] = problems;
      const next = first?.filter(Boolean).join(": ");
      setProblem(next);
      now.current.onInvalid?.(next);
    };
    return { root: schema, update, report };
  }, [schema, problems]);
  return { tools, problem };
}
