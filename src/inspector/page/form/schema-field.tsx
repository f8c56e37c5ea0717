import type { FunctionComponent } from "preact";
import { useRef } from "preact/hooks";
import { ChoiceControl } from "./choice-control.tsx";
import { canShow, type Field } from "./field.ts";
import { Act, Frame, titleOf } from "./field-frame.tsx";
import { FileControl } from "./file-control.tsx";
import { type DrawnProps, type FieldProps, useForm } from "./form-tools.ts";
import { firstValue } from "./initial-value.ts";
import { ListControl } from "./list-control.tsx";
import { memo } from "./memo.tsx";
import { ObjectControl } from "./object-control.tsx";
import { RawControl } from "./raw-control.tsx";
import { readSchema } from "./read-schema.ts";
import { TextControl } from "./text-control.tsx";
import { useFocus } from "./use-focus.ts";
import { VariantsControl } from "./variants-control.tsx";

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
      label={`${titleOf(props)} is null`}
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
