import { useState } from "preact/hooks";
import { truncateText } from "../../../core/text/truncate-text.ts";
import { visibleText } from "./show.ts";

/** How much more is shown each time it is asked for. */
const TIMES = 20;
/** Longer ones make browsers slow. */
const MOST_DRAWN = 500_000;

/** A text of somebody else: what hides in it is shown, its direction stays its own, and a long one is shown on demand. */
export function PlainText({
  text,
  most = 2_000,
  hasLinks = false,
}: {
  readonly text: string;
  /** Characters that are shown at first. @default 2,000 */
  readonly most?: number;
  /** Whether http(s) addresses in it are links. @default false */
  readonly hasLinks?: boolean;
}) {
  const [times, setTimes] = useState(1);
  const length = Math.min(most * times, MOST_DRAWN);
  const shown = truncateText(text, length);
  const part = `${length.toLocaleString("en")} of ${text.length.toLocaleString("en")} characters`;
  return (
    <>
      <bdi class="break plain-text">{hasLinks ? linked(shown) : visibleText(shown)}</bdi>
      {text.length > length && (
        <>
          {"… "}
          {length < MOST_DRAWN ? (
            <button type="button" class="quiet small" onClick={() => setTimes(times * TIMES)}>
              Show more ({part})
            </button>
          ) : (
            <span class="soft small">Only {part} are shown.</span>
          )}
        </>
      )}
    </>
  );
}

/** An http(s) address; the sentence marks at its end are not part of it. */
const ADDRESS = /(https?:\/\/[^\s<>"'`]{0,2000}[^\s<>"'`.,;:!?…)\]}*_])/i;
const MOST_PIECES = 200;

/** Parts a text at its addresses, each of which is every second piece. */
function linked(text: string) {
  const pieces = text.split(ADDRESS);
  return [
    ...pieces
      .slice(0, MOST_PIECES)
      .map((piece, index) =>
        index % 2 === 1 ? <SafeLink address={piece} text={visibleText(piece)} /> : visibleText(piece),
      ),
    visibleText(pieces.slice(MOST_PIECES).join("")),
  ];
}

/** A text that is a link where it is an http(s) address, and nothing but a text everywhere else. */
export function SafeLink({
  address,
  text = address,
  tabIndex,
}: {
  readonly address: string;
  readonly text?: string;
  /** Where the Tab key comes to it. @default in its turn */
  readonly tabIndex?: number | undefined;
}) {
  if (!isSafeAddress(address)) return <span class="break">{text}</span>;
  return (
    <a class="break" href={address} target="_blank" rel="noopener noreferrer" tabIndex={tabIndex}>
      {text}
    </a>
  );
}

/** Tells whether a text is an address that a browser may be sent to: http(s), and nobody's password in it. */
export function isSafeAddress(text: string): boolean {
  return /^https?:\/\/[^/?#\\@]+([/?#]|$)/i.test(text) && text.length <= 2_000 && URL.canParse(text);
}

/** Characters at the end of a name that are never cut. */
const TAIL = 16;

/** A name that is cut in its middle where there is no room: its end tells it from its neighbours. */
export function CutMiddle({ text }: { readonly text: string }) {
  const characters = [...text.slice(0, 300)];
  const at = characters.length > 2 * TAIL ? characters.length - TAIL : characters.length;
  return (
    <span class="cut-middle mono" title={visibleText(text, 300)}>
      <bdi class="cut">{visibleText(characters.slice(0, at).join(""))}</bdi>
      <bdi>{visibleText(characters.slice(at).join(""))}</bdi>
    </span>
  );
}
