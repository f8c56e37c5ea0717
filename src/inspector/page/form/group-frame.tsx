import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { Act, Frame, type FrameProps, Help, Name, Problems, titleOf } from "./field-frame.tsx";
import type { FocusRef } from "./use-focus.ts";

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
            <Act label={`Remove ${titleOf(props)}`} text="Remove" onClick={onRemove} />
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
          <span aria-hidden="true">+</span> Add {titleOf(frame)}
        </button>
      )}
    </Frame>
  );
}
