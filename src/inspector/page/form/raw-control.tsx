import { useMemo, useState } from "preact/hooks";
import { showBytes } from "../parts/show.ts";
import { LONG } from "./field.ts";
import { Frame } from "./field-frame.tsx";
import { type DrawnProps, useDraft } from "./form-tools.ts";
import { toJsonText } from "./json-value.ts";
import { parseJson } from "./parse-json.ts";
import { NEEDED } from "./parse-number.ts";

/** A field for any value, as JSON, kept as it is typed. */
export function RawControl(
  props: DrawnProps & {
    /** Why it is not asked for in another way. @default anything goes */
    readonly why?: string;
  },
) {
  const { value, isItem, why } = props;
  const [isAll, setAll] = useState(false);
  const json = useMemo(() => toJsonText(value), [value]);
  const isLong = json !== undefined && json.length > LONG && !isAll;
  const shown = isLong ? "" : json;
  const { text, problem, onInput } = useDraft(props, shown ?? "", (typed) =>
    isItem && typed.trim() === "" ? NEEDED : parseJson(typed),
  );
  return (
    <Frame {...props} problem={problem && `Not JSON yet, ${problem}`}>
      {(control) => (
        <>
          <textarea
            {...control}
            rows={Math.min(30, text.slice(0, 4_000).split("\n").length)}
            value={text}
            readOnly={isLong || json === undefined}
            placeholder={'JSON, such as "text", 12 or {"a": 1}'}
            spellcheck={false}
            onInput={onInput}
          />
          {json === undefined && <p class="soft small">Too deep to be shown; it stays as it is.</p>}
          {isLong && (
            <button type="button" onClick={() => setAll(true)}>
              Edit all {showBytes(json.length)}
            </button>
          )}
          {why !== undefined && <p class="soft small">{why}</p>}
        </>
      )}
    </Frame>
  );
}
