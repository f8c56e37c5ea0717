import { useMemo, useState } from "preact/hooks";
import { joinPointer } from "../parts/json-text.ts";
import { counted } from "../parts/show.ts";
import type { ObjectField } from "./field.ts";
import { Act, titleOf } from "./field-frame.tsx";
import { type DrawnProps, textOf, useForm } from "./form-tools.ts";
import { AddRow, GroupFrame } from "./group-frame.tsx";
import { firstValue, initialValue } from "./initial-value.ts";
import { isObject, type JsonObject, ownOf, showShort } from "./json-value.ts";
import { SchemaField } from "./schema-field.tsx";
import { issuesElsewhere, NO_ISSUES, splitIssues } from "./split-issues.ts";
import { FIRST, useFocus } from "./use-focus.ts";

/** Members that are drawn at first, and with each wish for more. */
const STEP = 200;

/** Required objects are drawn without being asked for, down to here: a schema may require itself. */
const UNASKED = 3;

/** A group of the members of an object; those that the schema does not know stay until they are taken away. */
export function ObjectControl(props: DrawnProps<ObjectField>) {
  const { field, value, pointer, isRequired, isBare, depth, schema, issues } = props;
  const { root, update } = useForm();
  const [place, focus] = useFocus();
  const [most, setMost] = useState(STEP);
  const { own, below } = useMemo(() => splitIssues(issues), [issues]);
  const change = (at: string, next: unknown, focused: string): void => {
    focus(focused);
    update(at, next);
  };
  if (value === undefined && !isBare && (!isRequired || depth > UNASKED)) {
    const start = (): void => change(pointer, initialValue(schema, root) ?? {}, FIRST);
    return <AddRow {...props} onAdd={start} place={place} />;
  }
  const object = isObject(value) ? value : {};
  const others = Object.keys(object).filter((each) => !field.known.has(each));
  const all = [
    ...field.members,
    ...others.map((name) => ({ name, schema: field.others, isRequired: true, isItem: true })),
  ];
  const drawn = all.slice(0, most);
  const names = new Set(drawn.map(({ name }) => name));
  return (
    <GroupFrame
      {...props}
      issues={[...own, ...issuesElsewhere(below, (each) => names.has(each))]}
      onRemove={() => change(pointer, undefined, "")}
      place={place}
    >
      {drawn.map((member) => {
        const { name } = member;
        const at = joinPointer(pointer, name);
        return (
          <div class="item-row" key={`m ${name}`}>
            <SchemaField
              {...member}
              value={ownOf(object, name)}
              pointer={at}
              issues={below.get(name) ?? NO_ISSUES}
              depth={depth + 1}
            />
            {"isItem" in member && (
              <div class="item-acts">
                <Act
                  label={`Remove ${showShort(name)}`}
                  text="✕"
                  onClick={() => change(at, undefined, `.add-member, ${FIRST}`)}
                />
              </div>
            )}
          </div>
        );
      })}
      {all.length === 0 && !field.isOpen && <p class="soft small">Nothing to fill in here.</p>}
      {all.length > most && (
        <button type="button" onClick={() => setMost(most + STEP)}>
          Show more of {counted(all.length - most, "other member")}
        </button>
      )}
      {field.isOpen && <AddMember {...props} object={object} />}
    </GroupFrame>
  );
}

function AddMember({ object, ...props }: DrawnProps<ObjectField> & { readonly object: JsonObject }) {
  const { field, pointer } = props;
  const { root, update } = useForm();
  const [name, setName] = useState("");
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
