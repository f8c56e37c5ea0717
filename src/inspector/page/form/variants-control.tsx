import { useRef, useState } from "preact/hooks";
import { Options } from "./choice-control.tsx";
import type { VariantsField } from "./field.ts";
import { Frame } from "./field-frame.tsx";
import { type DrawnProps, useForm } from "./form-tools.ts";
import { isOfKind, pickVariant, switchVariant } from "./pick-variant.ts";
import { RawControl } from "./raw-control.tsx";
import { SchemaField } from "./schema-field.tsx";
import { NO_ISSUES } from "./split-issues.ts";

/** A choice of what a value is, and the field for it; what another variant had comes back with it. */
export function VariantsControl(props: DrawnProps<VariantsField>) {
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
