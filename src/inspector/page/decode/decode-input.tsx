import { useRef } from "preact/hooks";
import { PlainText } from "../parts/plain-text.tsx";
import { DECODE_EXAMPLES } from "./decode-examples.ts";
import { answerWords } from "./decode-words.ts";
import { type GivenText, toGiven, tooLong } from "./given-text.ts";
import type { Decoded } from "./use-decoded.ts";

const PREVIEW = 800;

/** Where a tool result is pasted, typed or chosen as a file. */
export function DecodeInput({
  decoded: { given, give, answer, error, isBusy },
}: {
  readonly decoded: Decoded;
}) {
  const area = useRef<HTMLTextAreaElement>(null);
  const file = useRef<HTMLInputElement>(null);
  const { text, name } = given;
  const isHeld = name !== undefined;
  const clear = (): void => {
    give({ text: "" });
    area.current?.focus();
  };
  /** A long text never gets into the field: browsers take seconds for that. */
  const paste = (event: ClipboardEvent): void => {
    const { selectionStart, selectionEnd } = event.currentTarget as HTMLTextAreaElement;
    const pasted = event.clipboardData?.getData("text/plain") ?? "";
    const next = toGiven(
      text.slice(0, selectionStart) + pasted + text.slice(selectionEnd),
      "The pasted text",
    );
    if (next.name === undefined || isHeld) return;
    event.preventDefault();
    give(next);
  };
  const choose = async (): Promise<void> => {
    const [chosen] = file.current?.files ?? [];
    if (chosen !== undefined) give(await readFile(chosen, given));
    // The same file can be chosen once more.
    if (file.current !== null) file.current.value = "";
  };
  const words = isBusy ? "Reading…" : answer === undefined ? "" : answerWords(answer);
  return (
    <section class="stack" aria-label="What to decode">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields; these are buttons */}
      <div class="row" role="group" aria-label="Examples">
        {DECODE_EXAMPLES.map((example) => (
          <button
            type="button"
            class="small"
            key={example.title}
            onClick={() => give({ text: example.text })}
          >
            {example.title}
          </button>
        ))}
      </div>
      <textarea
        ref={area}
        aria-label="Tool result"
        value={isHeld ? `${text.slice(0, PREVIEW)}…` : text}
        readOnly={isHeld}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        placeholder="JSON of any kind, or one result in each line."
        aria-invalid={error !== undefined}
        aria-describedby="decode-status"
        onInput={({ currentTarget }) => give({ text: currentTarget.value })}
        onPaste={paste}
      />
      <p class={`small ${error === undefined ? "soft" : "toned bad"}`} id="decode-status" role="status">
        {error === undefined ? words : <PlainText text={error} />}
      </p>
      <div class="row">
        <button type="button" class="small" onClick={() => file.current?.click()}>
          Choose a file
        </button>
        <input type="file" hidden ref={file} aria-label="File to decode" onChange={choose} />
        <button type="button" class="small" disabled={text === ""} onClick={clear}>
          Clear
        </button>
        {isHeld && (
          <span class="soft small">
            <PlainText text={name} most={100} /> has {text.length.toLocaleString("en")} characters, too many
            to edit here.
          </span>
        )}
      </div>
    </section>
  );
}

/** Takes a file over; one that cannot be leaves what was there, and says why. */
async function readFile(file: File, old: GivenText): Promise<GivenText> {
  const { name, size } = file;
  const refused = tooLong(name, size);
  if (refused !== undefined) return { ...old, refused };
  try {
    return toGiven(await file.text(), name);
  } catch {
    return { ...old, refused: `${name} cannot be read; is it a file, and still there?` };
  }
}
