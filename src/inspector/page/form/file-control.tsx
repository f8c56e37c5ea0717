import { useState } from "preact/hooks";
import { showBytes } from "../parts/show.ts";
import { type FileField, isNamedFile } from "./field.ts";
import { Act, Frame, titleOf } from "./field-frame.tsx";
import { base64Size, MOST_BYTES, readFile } from "./file-bytes.ts";
import { type DrawnProps, useForm } from "./form-tools.ts";
import { showShort } from "./json-value.ts";

/** A field for bytes: a file of this computer. */
export function FileControl(props: DrawnProps<FileField>) {
  const { field, value, pointer, isItem } = props;
  const { update } = useForm();
  const [problem, setProblem] = useState<string>();
  const [chosen, setChosen] = useState("Base64 text");
  const named = isNamedFile(value) ? value : undefined;
  const base64 = named?.base64 ?? String(value ?? "");
  const remove = (): void => update(pointer, isItem ? (field.isNamed ? { base64: "" } : "") : undefined);
  const take = async (file: File): Promise<void> => {
    const read = await readFile(file);
    if ("problem" in read) return setProblem(read.problem);
    setProblem(undefined);
    setChosen(file.name);
    const { name: filename, type: contentType } = file;
    update(pointer, field.isNamed ? { ...read, filename, ...(contentType && { contentType }) } : read.base64);
  };
  return (
    <Frame {...props} problem={problem}>
      {(control) => (
        <>
          <input
            {...control}
            key={base64 === ""}
            type="file"
            accept={field.accept}
            onChange={({ currentTarget: { files } }) => files?.[0] && void take(files[0])}
          />
          <div class="row small soft break">
            {base64 === ""
              ? `No file yet; ${showBytes(MOST_BYTES)} at most.`
              : `${showShort(named?.filename ?? chosen)}, ${showBytes(base64Size(base64))}`}
            {base64 !== "" && (
              <Act label={`Remove the file of ${titleOf(props)}`} text="Remove" onClick={remove} />
            )}
          </div>
        </>
      )}
    </Frame>
  );
}
