import { useMemo, useState } from "preact/hooks";
import { joinPointer, membersIn } from "../parts/json-text.ts";
import { counted } from "../parts/show.ts";
import type { Member, ObjectField } from "./field.ts";
import { Act, titleOf } from "./field-frame.tsx";
import { type DrawnProps, type FieldProps, textOf, useForm } from "./form-tools.ts";
import { AddRow, GroupFrame } from "./group-frame.tsx";
import { firstValue, initialValue } from "./initial-value.ts";
import { type JsonObject, ownOf, showShort } from "./json-value.ts";
import { SchemaField } from "./schema-field.tsx";
import { issuesElsewhere, NO_ISSUES, splitIssues } from "./split-issues.ts";
import { FIRST, type FocusRef, useFocus } from "./use-focus.ts";

/** Members that are drawn at first, and with each wish for more. */
const STEP = 200;

/** Required objects are drawn without being asked for, down to here: a schema may require itself. */
const UNASKED = 3;

/** An object: a group of its members, or what offers to add it. */
export function ObjectControl(props: DrawnProps<ObjectField>) {
  const { value, pointer, isRequired, isBare, depth, schema } = props;
  const { root, update } = useForm();
  const [place, focus] = useFocus();
  const change: Change = (at, next, focused) => {
    focus(focused);
    update(at, next);
  };
  if (value !== undefined || isBare || (isRequired && depth <= UNASKED)) {
    return <Members {...props} change={change} place={place} />;
  }
  const start = (): void => change(pointer, initialValue(schema, root) ?? {}, FIRST);
  return <AddRow {...props} onAdd={start} place={place} />;
}

/** Puts another value at a pointer, and focuses what a selector finds. */
type Change = (pointer: string, next: unknown, focused: string) => void;

type MembersProps = DrawnProps<ObjectField> & { readonly change: Change; readonly place: FocusRef };

/** The members of an object; those that the schema does not know stay until they are taken away. */
function Members({ change, ...props }: MembersProps) {
  const { field, value, pointer, depth, issues } = props;
  const [most, setMost] = useState(STEP);
  const { own, below } = useMemo(() => splitIssues(issues), [issues]);
  const object = membersIn(value);
  const all = membersOf(field, object);
  const drawn = all.slice(0, most);
  const names = new Set(drawn.map(({ name }) => name));
  return (
    <GroupFrame
      {...props}
      issues={[...own, ...issuesElsewhere(below, (each) => names.has(each))]}
      onRemove={() => change(pointer, undefined, "")}
    >
      {drawn.map((member) => (
        <MemberRow
          key={`m ${member.name}`}
          {...member}
          value={ownOf(object, member.name)}
          pointer={joinPointer(pointer, member.name)}
          issues={below.get(member.name) ?? NO_ISSUES}
          depth={depth + 1}
          change={change}
        />
      ))}
      {all.length === 0 && (
        <p class="soft small">
          {field.isOpen
            ? "Nothing is asked for; members may be added."
            : depth > 0
              ? "Nothing to fill in here."
              : "Takes no input."}
        </p>
      )}
      {all.length > most && (
        <button type="button" onClick={() => setMost(most + STEP)}>
          Show more of {counted(all.length - most, "other member")}
        </button>
      )}
      {field.isOpen && <AddMember {...props} object={object} />}
    </GroupFrame>
  );
}

/** The members that the schema knows, and those that are there besides. */
function membersOf(field: ObjectField, object: JsonObject): readonly (Member & { readonly isItem?: true })[] {
  const others = Object.keys(object).filter((name) => !field.known.has(name));
  return [
    ...field.members,
    ...others.map((name) => ({ name, schema: field.others, isRequired: true, isItem: true as const })),
  ];
}

function MemberRow({ change, ...props }: FieldProps & { readonly change: Change }) {
  const remove = (): void => change(props.pointer, undefined, `.add-member, ${FIRST}`);
  return (
    <div class="item-row">
      <SchemaField {...props} />
      {props.isItem && (
        <div class="item-acts">
          <Act label={`Remove ${showShort(props.name)}`} text="✕" onClick={remove} />
        </div>
      )}
    </div>
  );
}

const focusIt = (input: HTMLElement | null): void => input?.focus();

function AddMember({ object, ...props }: DrawnProps<ObjectField> & { readonly object: JsonObject }) {
  const { field, pointer } = props;
  const { root, update } = useForm();
  const [name, setName] = useState<string>();
  if (name === undefined) {
    return (
      <button type="button" class="add-member small" onClick={() => setName("")}>
        <span aria-hidden="true">+</span> Add member<span class="hidden-text"> to {titleOf(props)}</span>
      </button>
    );
  }
  const isTaken = Object.hasOwn(object, name) || field.known.has(name);
  const add = (): void => {
    if (isTaken || name === "") return;
    update(joinPointer(pointer, name), firstValue(field.others, root));
    setName("");
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    add();
  };
  return (
    <div class="row">
      <input
        type="text"
        class="add-member"
        ref={focusIt}
        aria-label={`Name of a new member of ${titleOf(props)}`}
        aria-invalid={isTaken || undefined}
        placeholder="name of a new member"
        autocomplete="off"
        value={name}
        onInput={(event) => setName(textOf(event))}
        onKeyDown={onKeyDown}
      />
      <button type="button" disabled={isTaken || name === ""} onClick={add}>
        Add member
      </button>
      <span class="field-problems small" role="status">
        {isTaken && "There is a member of this name already."}
      </span>
    </div>
  );
}
