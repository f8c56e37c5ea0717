import { CopyButton } from "../parts/copy-button.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { saveFile } from "./save-file.ts";

const SHOWN = 20_000;

/** A text of any length: its beginning, more when asked for, to be copied and kept. */
export function Sheet({
  label,
  text,
  file,
}: {
  /** What it is, for screen readers. */
  readonly label: string;
  readonly text: string;
  /** What it is called as a file; without one it is not offered. @default none */
  readonly file?: string | undefined;
}) {
  return (
    <div class="stack tight">
      <div class="row sheet-tools">
        <CopyButton label="Copy" what={label} text={() => text} />
        {file !== undefined && (
          <button type="button" onClick={() => saveFile(file, text)}>
            Download
          </button>
        )}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      {/* biome-ignore lint/a11y/useSemanticElements: a section cannot be preformatted */}
      <pre class="sheet" role="region" aria-label={label} tabIndex={0}>
        <PlainText text={text} most={SHOWN} />
      </pre>
    </div>
  );
}
