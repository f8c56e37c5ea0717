import { counted } from "../parts/show.ts";
import type { ChoiceField, FixedField, SimpleField } from "./field.ts";
import { type ControlProps, Frame } from "./field-frame.tsx";
import { type DrawnProps, textOf, useForm } from "./form-tools.ts";
import { isSameJson, showShort } from "./json-value.ts";
import { RawControl } from "./raw-control.tsx";

/** So many are a menu; more would make the page slow. */
const MENU = 2_000;

/** A field for one of some values. */
export function ChoiceControl(props: DrawnProps<ChoiceField | FixedField | SimpleField>) {
  const { value, pointer, isRequired, isItem } = props;
  const { update } = useForm();
  const options = [...optionsOf(props.field)];
  if (options.length > MENU) {
    return <RawControl {...props} why={`One of ${counted(options.length, "value")}.`} />;
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
    <select {...control} value={chosen} onChange={(event) => onChoose(Number(textOf(event)))}>
      {entries.map(([index, label]) => (
        <option key={index} value={index}>
          {label}
        </option>
      ))}
    </select>
  );
}
