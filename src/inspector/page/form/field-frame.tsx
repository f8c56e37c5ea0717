import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { joinPointer } from "../parts/json-text.ts";
import { PlainText } from "../parts/plain-text.tsx";
import { visibleText } from "../parts/visible-text.ts";
import type { DrawnProps } from "./form-tools.ts";
import { showShort } from "./json-value.ts";
import type { PlacedIssue } from "./split-issues.ts";
import type { FocusRef } from "./use-focus.ts";

/** What ties an input to its label, its help and its errors. */
export interface ControlProps {
  readonly id: string;
  readonly "aria-labelledby": string;
  readonly "aria-describedby": string;
  readonly "aria-invalid": boolean | undefined;
}

/** What stands around every field. */
export type FrameProps = Omit<DrawnProps, "schema" | "value" | "pointer">;

/** A field with one input, or with a group of them that has a name. */
export function Frame({
  children,
  problem,
  ...props
}: FrameProps & {
  readonly children: (control: ControlProps) => ComponentChildren;
  /** Why what was typed is no value. @default it is one */
  readonly problem?: string | undefined;
}) {
  const { isItem, isRequired, issues, nullAct, depth } = props;
  const id = useId();
  const control: ControlProps = {
    id,
    "aria-labelledby": `${id}-label`,
    "aria-describedby": `${id}-help ${id}-bad`,
    "aria-invalid": problem !== undefined || issues.length > 0 || undefined,
  };
  return (
    <div class={`field ${isItem ? "item" : ""} ${depth < 0 ? "whole" : ""}`}>
      <label class={depth < 0 ? "hidden-text" : "field-head"} for={id}>
        <Name {...props} id={`${id}-label`} />
      </label>
      <div class="field-body">
        <div class="field-line">
          <div class="field-control">{children(control)}</div>
          {nullAct}
        </div>
        <Help {...props} id={`${id}-help`}>
          {isRequired && <span class="hidden-text">Required.</span>}
        </Help>
        <Problems id={`${id}-bad`} issues={issues} problem={problem} />
      </div>
    </div>
  );
}

/** What a field is called: by its schema, or by its place where several have the same. */
export function titleOf({ field, name, isItem }: Pick<FrameProps, "field" | "name" | "isItem">): string {
  return showShort((isItem ? undefined : field.title) ?? (name === "" ? '""' : name));
}

/** The name of a field, and what is said beside it. */
export function Name({ id, ...props }: FrameProps & { readonly id: string }) {
  const { field, name, isItem, isRequired } = props;
  const title = titleOf(props);
  return (
    <>
      <span class="field-name" id={id}>
        {title}
      </span>
      {!isItem && (
        <>
          {title !== showShort(name) && name !== "" && <code class="soft break">{showShort(name)}</code>}
          {isRequired && (
            <span class="soft small" aria-hidden="true">
              required
            </span>
          )}
          {field.isDeprecated && <span class="badge warn">deprecated</span>}
        </>
      )}
    </>
  );
}

/** What a schema says about a field, and its rules. */
export function Help({
  id,
  field: { description, hints },
  children,
}: Pick<FrameProps, "field"> & { readonly id: string; readonly children?: ComponentChildren }) {
  return (
    <div class="field-help small soft break" id={id}>
      {children}
      {description !== undefined && <PlainText text={description} most={400} />}
      {hints.length > 0 && <div>{hints.join(" · ")}</div>}
    </div>
  );
}

/** The errors of a field, each with the way to it where that is not this very place. */
export function Problems({
  id,
  issues,
  problem,
}: {
  readonly id?: string;
  readonly issues: readonly PlacedIssue[];
  readonly problem?: string | undefined;
}) {
  return (
    <div class="field-problems small break" id={id}>
      {problem !== undefined && <p>{problem}</p>}
      {issues.slice(0, 50).map(({ path, expected, found }, index) => (
        <p key={index}>
          {path.length > 0 && <code>{visibleText(path.reduce(joinPointer, ""), 200)}: </code>}
          {expected === "a required property" && found === "nothing"
            ? "Required"
            : `expected ${visibleText(expected, 300)}, found ${visibleText(found, 300)}`}
        </p>
      ))}
    </div>
  );
}

/** A button of a field, with a name of its own for screen readers. */
export function Act({
  label,
  text,
  place,
  ...rest
}: {
  readonly label: string;
  readonly text: string;
  readonly onClick: () => void;
  /** Where its focus is kept, when it is drawn anew. @default nowhere */
  readonly place?: FocusRef;
  readonly disabled?: boolean;
  readonly "aria-pressed"?: boolean;
}) {
  return (
    <button
      type="button"
      class="quiet act small"
      ref={place ?? null}
      aria-label={label}
      title={label}
      {...rest}
    >
      {text}
    </button>
  );
}
