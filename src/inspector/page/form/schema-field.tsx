import type { FunctionComponent } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { joinPointer } from "../../../core/json/json-pointer.ts";
import { showCount } from "../parts/show.ts";
import { listIn, membersIn } from "../parts/show-json.ts";
import {
  canShow,
  type Field,
  type ListField,
  type Member,
  type ObjectField,
  type VariantsField,
} from "./field.ts";
import { Act, AddRow, Frame, fieldTitle, GroupFrame } from "./field-frame.tsx";
import { type FormObject, ownOf, showShort } from "./form-json.ts";
import {
  type DrawnProps,
  FIRST,
  type FieldProps,
  type FocusRef,
  fieldText,
  issuesElsewhere,
  NO_ISSUES,
  type PlacedIssue,
  splitIssues,
  useFocus,
  useForm,
} from "./form-tools.ts";
import { firstValue, initialValue, isOfKind, pickVariant, switchVariant } from "./initial-value.ts";
import { readSchema } from "./read-schema.ts";
import { ChoiceControl, FileControl, Options, RawControl, TextControl } from "./value-controls.tsx";

/** Fields in fields that are drawn; what is deeper is JSON. */
const DEEPEST = 12;

/** Draws one place of an input as its schema asks for it. */
export const SchemaField = memo<FieldProps>(function DrawnField(props) {
  const { schema, value, depth } = props;
  const field = readSchema(schema, useForm().root);
  // Until it is gone: a field that changed under the hands of somebody typing would lose them.
  const isOdd = useRef(false);
  isOdd.current = value !== undefined && (isOdd.current || !canShow(field, value));
  if (isOdd.current || depth > DEEPEST) {
    return <RawControl {...props} field={field} why="The form has no field for this; it is kept as JSON." />;
  }
  return field.kind === "never" ? null : <Nullable {...props} field={field} />;
});

/** Those of them that have a button for `null`; others have it among their choices. */
const NULLABLE = ["object", "list", "text", "file", "number"];

function controlOf(kind: Field["kind"]) {
  const controls = {
    object: ObjectControl,
    list: ListControl,
    text: TextControl,
    number: TextControl,
    file: FileControl,
    choice: ChoiceControl,
    boolean: ChoiceControl,
    fixed: ChoiceControl,
    never: RawControl,
    json: RawControl,
    variants: VariantsControl,
  };
  return controls[kind] as FunctionComponent<DrawnProps>;
}

function Nullable(props: DrawnProps) {
  const { field, schema, value, pointer, isItem } = props;
  const { root, update } = useForm();
  const [place, focus] = useFocus();
  const Control = controlOf(field.kind);
  if (!field.isNullable || !NULLABLE.includes(field.kind)) return <Control {...props} />;
  const isNull = value === null;
  const toggle = (): void => {
    focus("");
    update(pointer, isNull ? (isItem ? firstValue(schema, root) : undefined) : null);
  };
  const nullAct = (
    <Act
      label={`${fieldTitle(props)} is null`}
      text="null"
      aria-pressed={isNull}
      onClick={toggle}
      place={place}
    />
  );
  return isNull ? (
    <Frame {...props} nullAct={nullAct}>
      {(control) => <input {...control} type="text" value="" placeholder="null" disabled />}
    </Frame>
  ) : (
    <Control {...props} nullAct={nullAct} />
  );
}

/** Draws a component again only when its properties change: a form of 500 fields is typed into one at a time. */
function memo<P extends object>(Draw: FunctionComponent<P>): FunctionComponent<P> {
  return (props) => useMemo(() => <Draw {...props} />, Object.values(props));
}

/** Items that are drawn at a time. */
const PAGE = 50;

/** A group of the items of a list, a page of them at a time. */
function ListControl(props: DrawnProps<ListField>) {
  const { field, value, isRequired, isBare, issues } = props;
  const { own, below } = useMemo(() => splitIssues(issues), [issues]);
  const { items, from, to, setPage, change, start, add, place } = useItems(props);
  if (value === undefined && !isRequired && !isBare) return <AddRow {...props} onAdd={start} place={place} />;
  const title = fieldTitle(props);
  return (
    <GroupFrame
      {...props}
      issues={[...own, ...issuesElsewhere(below, (each) => Number(each) >= from && Number(each) < to)]}
      note={showCount(items.length, "item")}
      onRemove={() => change(undefined, 0, "")}
      place={place}
    >
      {items.slice(from, to).map((_, at) => {
        const index = from + at;
        return (
          <Item
            key={index}
            {...{ props, items, index, change }}
            issues={below.get(String(index)) ?? NO_ISSUES}
          />
        );
      })}
      <div class="row">
        <button type="button" data-add disabled={items.length >= field.max} onClick={add}>
          <span aria-hidden="true">+</span> Add item<span class="hidden-text"> to {title}</span>
        </button>
        {items.length > PAGE && <PageButtons {...{ from, to, title, setPage }} count={items.length} />}
      </div>
    </GroupFrame>
  );
}

/** Leads to the items before and after those that are drawn. */
function PageButtons({
  from,
  to,
  count,
  title,
  setPage,
}: {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /** What the list is called. */
  readonly title: string;
  readonly setPage: (page: number) => void;
}) {
  const turn = (text: string, next: number) => (
    <button
      type="button"
      disabled={next < 0 || next * PAGE >= count}
      aria-label={`${text} items of ${title}`}
      onClick={() => setPage(next)}
    >
      {text}
    </button>
  );
  return (
    <>
      {turn("Earlier", from / PAGE - 1)}
      <span class="small soft">
        {from + 1} to {to}
      </span>
      {turn("Later", from / PAGE + 1)}
    </>
  );
}

/** Puts other items in the place of the present ones, shows one of them, and focuses what a selector finds. */
type Change = (next: readonly unknown[] | undefined, shown: number, focused: string) => void;

/** The items of a list, and what can be done with them. */
function useItems({ field, value, pointer, schema }: DrawnProps<ListField>) {
  const { root, update } = useForm();
  const [page, setPage] = useState(0);
  const [place, focus] = useFocus();
  const items = listIn(value);
  const count = items.length;
  const from = Math.min(page, Math.max(0, Math.ceil(count / PAGE) - 1)) * PAGE;
  const change: Change = (next, shown, focused) => {
    update(pointer, next);
    setPage(Math.floor(shown / PAGE));
    focus(focused);
  };
  const add = (): void => {
    const item = firstValue(field.first[count] ?? field.items, root);
    change([...items, item], count, `[data-item="${count}"] :is(${FIRST})`);
  };
  const start = (): void => {
    const made = initialValue(schema, root);
    if (Array.isArray(made) && made.length > 0) change(made, 0, FIRST);
    else if (field.max > 0) add();
    else update(pointer, []);
  };
  return { items, from, to: Math.min(from + PAGE, count), setPage, change, start, add, place };
}

interface ItemProps {
  readonly items: readonly unknown[];
  readonly index: number;
  readonly change: Change;
  readonly props: DrawnProps<ListField>;
  readonly issues: readonly PlacedIssue[];
}

function Item({ items, index, change, props: { field, pointer, depth }, issues }: ItemProps) {
  const rest = items.toSpliced(index, 1);
  const to = index - 1;
  return (
    <div class="item-row" data-item={index}>
      <SchemaField
        {...{ issues, schema: field.first[index] ?? field.items, value: items[index] }}
        pointer={joinPointer(pointer, index)}
        name={`Item ${index + 1}`}
        isRequired
        isItem
        depth={depth + 1}
      />
      <div class="item-acts">
        <Act
          label={`Move item ${index + 1} up`}
          text="↑"
          disabled={to < 0}
          onClick={() =>
            change(
              rest.toSpliced(to, 0, items[index]),
              to,
              `[data-item="${to}"] > .item-acts > :nth-child(${to > 0 ? 1 : 2})`,
            )
          }
        />
        <Act label={`Remove item ${index + 1}`} text="✕" onClick={() => change(rest, index, "[data-add]")} />
      </div>
    </div>
  );
}

/** A choice of what a value is, and the field for it; what another variant had comes back with it. */
function VariantsControl(props: DrawnProps<VariantsField>) {
  const { value, pointer, isRequired, isItem, issues, depth } = props;
  const { variants, isNullable } = props.field;
  const [at, choose] = useVariant(props);
  const chosen = variants[at];
  const labels = variants.map(({ label }) => label);
  if (isNullable) labels.push("null");
  const isNull = value === null && isNullable;
  const isOdd = chosen === undefined && value !== undefined && !isNull;
  return (
    <div class="variants stack">
      <Frame {...props} issues={chosen === undefined && !isOdd ? issues : NO_ISSUES}>
        {(control) => (
          <Options
            {...{ control, labels }}
            canUnset={!isRequired && !isItem}
            chosen={isNull ? variants.length : at}
            onChoose={choose}
          />
        )}
      </Frame>
      {isOdd && <RawControl {...props} why="This value fits none of the variants; it is kept." />}
      {chosen !== undefined && (
        <div class="variant">
          <SchemaField
            {...{ value, issues, pointer, schema: chosen.schema, name: chosen.label }}
            key={at}
            isRequired
            isItem
            isBare
            depth={depth + 1}
          />
        </div>
      )}
    </div>
  );
}

/** Which variant a value is, and what makes it another one. */
function useVariant({
  field,
  value,
  pointer,
}: DrawnProps<VariantsField>): readonly [at: number, choose: (index: number) => void] {
  const { variants } = field;
  const { root, update } = useForm();
  const [wanted, setWanted] = useState(-1);
  const before = useRef(new Map<number, unknown>()).current;
  // The one that was asked for, as long as the value can be one of it.
  const asked = variants[wanted];
  const isAsked = asked !== undefined && (value === undefined || isOfKind(asked.schema, value, root));
  const at = isAsked ? wanted : pickVariant(field, value, root);
  const choose = (index: number): void => {
    if (at >= 0) before.set(at, value);
    setWanted(index);
    const schema = variants[index]?.schema;
    if (schema === undefined) update(pointer, index < 0 ? undefined : null);
    else update(pointer, switchVariant(schema, { value, before: before.get(index), root }));
  };
  return [at, choose];
}

/** Members that are drawn at first, and with each wish for more. */
const STEP = 200;

/** Required objects are drawn without being asked for, down to here: a schema may require itself. */
const UNASKED = 3;

/** An object: a group of its members, or what offers to add it. */
function ObjectControl(props: DrawnProps<ObjectField>) {
  const { value, pointer, isRequired, isBare, depth, schema } = props;
  const { root, update } = useForm();
  const [place, focus] = useFocus();
  const change: MemberChange = (at, next, focused) => {
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
type MemberChange = (pointer: string, next: unknown, focused: string) => void;

type MembersProps = DrawnProps<ObjectField> & { readonly change: MemberChange; readonly place: FocusRef };

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
          Show more of {showCount(all.length - most, "other member")}
        </button>
      )}
      {field.isOpen && <AddMember {...props} object={object} />}
    </GroupFrame>
  );
}

/** The members that the schema knows, and those that are there besides. */
function membersOf(field: ObjectField, object: FormObject): readonly (Member & { readonly isItem?: true })[] {
  const others = Object.keys(object).filter((name) => !field.known.has(name));
  return [
    ...field.members,
    ...others.map((name) => ({ name, schema: field.others, isRequired: true, isItem: true as const })),
  ];
}

function MemberRow({ change, ...props }: FieldProps & { readonly change: MemberChange }) {
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

function AddMember({ object, ...props }: DrawnProps<ObjectField> & { readonly object: FormObject }) {
  const { field, pointer } = props;
  const { root, update } = useForm();
  const [name, setName] = useState<string>();
  if (name === undefined) {
    return (
      <button type="button" class="add-member small" onClick={() => setName("")}>
        <span aria-hidden="true">+</span> Add member<span class="hidden-text"> to {fieldTitle(props)}</span>
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
        aria-label={`Name of a new member of ${fieldTitle(props)}`}
        aria-invalid={isTaken || undefined}
        placeholder="name of a new member"
        autocomplete="off"
        value={name}
        onInput={(event) => setName(fieldText(event))}
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
