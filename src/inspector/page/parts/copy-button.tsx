import { useSession } from "../session.ts";

/** Copies a text; it is made when it is asked for. */
export function CopyButton({
  label,
  text,
  what = label,
}: {
  readonly label: string;
  readonly text: () => string;
  /** What is said to have been copied. @default the label */
  readonly what?: string;
}) {
  const { say } = useSession();
  const copy = (): void => {
    writeClipboard(text()).then(
      () => say(`Copied: ${what}.`),
      () => say("The browser does not allow copying here."),
    );
  };
  return (
    <button type="button" onClick={copy}>
      {label}
    </button>
  );
}

/** Browsers offer the clipboard on secure origins alone; elsewhere a selection is copied. */
async function writeClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (!isCopied) throw new Error();
}
