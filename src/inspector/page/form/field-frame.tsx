import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { joinPointer } from "../../../core/json/json-pointer.ts";
import { MarkdownLine } from "../parts/markdown-text.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { visibleText } from "../parts/show.ts";
import { showShort } from "./form-json.ts";
import type { DrawnProps, FocusRef, PlacedIssue } from "./form-tools.ts";

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
export function fieldTitle({ field, name, isItem }: Pick<FrameProps, "field" | "name" | "isItem">): string {
  return showShort((isItem ? undefined : field.title) ?? (name === "" ? '""' : name));
}

/** The name of a field, and what is said beside it. */
function Name({ id, ...props }: FrameProps & { readonly id: string }) {
  const { field, name, isItem, isRequired } = props;
  const title = fieldTitle(props);
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

/** Characters of a description that are shown at first. */
const MOST_HELP = 400;

/** What a schema says about a field, and its rules. */
function Help({
  id,
  field: { description, hints },
  children,
}: Pick<FrameProps, "field"> & { readonly id: string; readonly children?: ComponentChildren }) {
  return (
    <div class="field-help small soft break" id={id}>
      {children}
      {description !== undefined &&
        (description.length > MOST_HELP ? (
          <PlainText text={description} most={MOST_HELP} />
        ) : (
          <MarkdownLine text={description} />
        ))}
      {hints.length > 0 && <div>{hints.join(" · ")}</div>}
    </div>
  );
}

/** The errors of a field, each with the way to it where that is not this very place. */
function Problems({
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
            : `must be ${visibleText(expected, 300)}; it is ${visibleText(found, 300)}`}
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

/** What stands around fields that belong together. */
export function GroupFrame({
  onRemove,
  note,
  place,
  children,
  ...props
}: FrameProps & {
  /** Takes it away, where it does not have to be there. */
  readonly onRemove: () => void;
  /** A word beside the name. @default none */
  readonly note?: string;
  readonly place: FocusRef;
  readonly children: ComponentChildren;
}) {
  const { isRequired, isItem, isBare, issues, nullAct } = props;
  const id = useId();
  const problems = <Problems id={`${id}-bad`} issues={issues} />;
  const members = (
    <div class="members stack" ref={place}>
      {isBare && problems}
      {children}
    </div>
  );
  if (isBare) return members;
  return (
    <fieldset class="group" aria-labelledby={`${id}-label`} aria-describedby={`${id}-help ${id}-bad`}>
      <div class="field-head">
        <Name {...props} id={`${id}-label`} />
        {note !== undefined && <span class="soft small">{note}</span>}
        <span class="group-acts">
          {nullAct}
          {!isRequired && !isItem && (
            <Act label={`Remove ${fieldTitle(props)}`} text="Remove" onClick={onRemove} />
          )}
        </span>
      </div>
      <Help {...props} id={`${id}-help`} />
      {problems}
      {members}
    </fieldset>
  );
}

/** Offers to add what is not set. */
export function AddRow({
  onAdd,
  place,
  ...frame
}: FrameProps & {
  readonly onAdd: () => void;
  readonly place: FocusRef;
}) {
  return (
    <Frame {...frame}>
      {({ "aria-describedby": help }) => (
        <button type="button" ref={place} aria-describedby={help} onClick={onAdd}>
          <span aria-hidden="true">+</span> Add {fieldTitle(frame)}
        </button>
      )}
    </Frame>
  );
}
