import "./decode.css";
import { useEffect, useRef, useState } from "preact/hooks";
import type { DecodeAnswer, DecodedView } from "../../protocol.ts";
import type { Api } from "../connection/api.ts";
import { toApiError, useSession } from "../page-session.ts";
import { Badge, Empty, Facts, MoreList } from "../parts/controls.tsx";
import { JsonTree } from "../parts/json-tree.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { showBytes } from "../parts/show.ts";
import { obtainedWords } from "../result/result-facts.ts";
import { ResultPanel } from "../result/result-panel.tsx";
import { answerWords, FORMAT_WORDS, outcomeWords, wrappingWords } from "./decode-words.ts";

const MOST_ROWS = 7;

/** Says of any tool result which format it is, what is odd about it, and what the data is. */
export function DecodeView() {
  const decoded = useDecoded();
  const { answer, error, isBusy } = decoded;
  return (
    <div class="decode">
      <div class="stack given-side">
        <header>
          <h2>Decode</h2>
          <p class="soft small">Paste what a tool answered, or try an example.</p>
        </header>
        <DecodeInput decoded={decoded} />
      </div>
      <section class="stack" aria-label="What it is" aria-busy={isBusy}>
        {answer === undefined ? (
          <Empty title={error === undefined ? "Nothing to decode yet" : "This could not be read"}>
            What the text is and what is odd about it is shown here.
          </Empty>
        ) : (
          <Results results={answer.results} />
        )}
      </section>
    </div>
  );
}

/** The results of a text: one as it is, several as a list of which one is shown. */
function Results({ results }: { readonly results: readonly DecodedView[] }) {
  const [chosen, setChosen] = useState(0);
  const at = Math.min(chosen, results.length - 1);
  const shown = results[at];
  return (
    <>
      {results.length > 1 && (
        <select
          aria-label="Results"
          size={Math.min(results.length, MOST_ROWS)}
          value={at}
          onInput={({ currentTarget }) => setChosen(currentTarget.selectedIndex)}
        >
          {results.map((result, index) => (
            <option key={index} value={index}>
              {rowWords(result, index)}
            </option>
          ))}
        </select>
      )}
      {shown !== undefined && <DecodedResult key={at} result={shown} />}
    </>
  );
}

function rowWords(result: DecodedView, index: number): string {
  const { line, format, odd } = result;
  const place = line === undefined ? `No. ${index + 1}` : `Line ${line}`;
  const words = [place, FORMAT_WORDS[format], outcomeWords(result)[1]];
  return [...words, ...(odd.length > 0 ? [`${odd.length} odd`] : [])].join(" · ");
}

const PREVIEW = 800;

/** Where a tool result is pasted, typed or chosen as a file. */
function DecodeInput({ decoded: { given, give, answer, error, isBusy } }: { readonly decoded: Decoded }) {
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

/** A text to try the view with. */
interface DecodeExample {
  readonly title: string;
  readonly text: string;
}

/** One of each that people meet most. */
export const DECODE_EXAMPLES: readonly DecodeExample[] = [
  example("Text that holds JSON", {
    content: [textBlock('[{"day":"2026-10-13","parcels":61},{"day":"2026-10-14","parcels":74}]')],
  }),
  example("Tool envelope", {
    content: [textBlock("Parcel P-1042 is in transit; it left Hanau."), textBlock(envelopeBlock())],
  }),
  example("JSON-RPC answer", {
    jsonrpc: "2.0",
    id: 7,
    result: {
      content: [textBlock("There is no parcel P-9.")],
      structuredContent: { code: "NOT_FOUND", parcel: "P-9" },
      isError: true,
    },
  }),
];

function example(title: string, value: unknown): DecodeExample {
  return { title, text: JSON.stringify(value, null, 2) };
}

function textBlock(text: string): object {
  return { type: "text", text };
}

/** As `waybill encode --to tool-envelope` writes it. */
function envelopeBlock(): string {
  const envelope = {
    payload: { parcel: "P-1042", state: "in transit" },
    meta: { tool: "track", ts: "2026-10-14T19:05:12.000Z", version: 1 },
  };
  return `__ENVELOPE_V1__:${btoa(JSON.stringify(envelope))}`;
}

/** What one result turned out to be: its format, what is odd about it, and the data. */
function DecodedResult({ result }: { readonly result: DecodedView }) {
  const { format, candidates = [], wrapping, tool, obtained, error, text, odd } = result;
  const { envelope, notes = [], data = error?.details } = result;
  const title = FORMAT_WORDS[format];
  const [tone, word] = outcomeWords(result);
  return (
    <article class="stack" aria-label={title}>
      <div class="card stack">
        <header class="row">
          <h3>{title}</h3>
          <Badge tone={tone}>{word}</Badge>
          {odd.length === 0 && <span class="soft small">nothing odd</span>}
        </header>
        {odd.length > 0 && (
          <div class="notice warn small">
            <MoreList
              label="What is odd"
              items={odd}
              draw={({ code, message }) => (
                <>
                  <PlainText text={message} most={1_000} />{" "}
                  <code>
                    <PlainText text={code} most={100} />
                  </code>
                </>
              )}
            />
          </div>
        )}
        <Facts
          facts={[
            ["Fits", candidates.map((one) => `${FORMAT_WORDS[one.format]}. ${one.why ?? ""}`).join("\n")],
            ["Given as", wrappingWords(wrapping)],
            ["Notes", notes.join("\n")],
            ["Tool", tool],
            ["Data", obtained && obtainedWords(obtained)],
            ["Error code", error?.code],
            ["Error", error?.message],
            ["Text", obtained === "text-json" || text === error?.message ? "" : text],
          ]}
        />
      </div>
      {envelope !== undefined && <ResultPanel result={{ envelope }} />}
      {envelope === undefined && data !== undefined && (
        <div class="card">
          <JsonTree value={data} label="Data" />
        </div>
      )}
    </article>
  );
}

const WAIT_MS = 300;

interface Draft {
  readonly given: GivenText;
  /** What became of a text; the one it belongs to tells whether that is still wanted. */
  readonly found?: { readonly given: GivenText; readonly answer?: DecodeAnswer; readonly error?: string };
}

/** Kept while other views are shown, in memory alone, and gone with the reader: another token has another draft. */
const DRAFTS = new WeakMap<Api, Draft>();

/** A text, and what it turned out to be. */
interface Decoded {
  readonly given: GivenText;
  readonly give: (given: GivenText) => void;
  /** Of the last text that could be read; it stays while another one is read. */
  readonly answer: DecodeAnswer | undefined;
  /** Why the text cannot be read. */
  readonly error: string | undefined;
  readonly isBusy: boolean;
}

/** Decodes a text as it is typed, a moment after the last key; a newer text ends the reading of the older one. */
function useDecoded(): Decoded {
  const { api } = useSession();
  const [draft, setDraft] = useState<Draft>(() => DRAFTS.get(api) ?? { given: { text: "" } });
  DRAFTS.set(api, draft);
  const { given, found } = draft;
  const isEmpty = given.text.trim() === "";
  const isBusy = !isEmpty && found?.given !== given;
  useEffect(() => {
    if (!isBusy) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      const outcome = await read(api, given.text, stop.signal);
      if (!stop.signal.aborted) setDraft({ given, found: { given, ...outcome } });
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [api, given, isBusy]);
  return {
    given,
    give: (next) => setDraft((old) => ({ ...old, given: next })),
    answer: isEmpty ? undefined : found?.answer,
    error: given.refused ?? (isEmpty || isBusy ? undefined : found?.error),
    isBusy,
  };
}

async function read(
  api: Api,
  text: string,
  signal: AbortSignal,
): Promise<{ readonly answer: DecodeAnswer } | { readonly error: string }> {
  const error = tooLong("The text", sentBytes(text));
  if (error !== undefined) return { error };
  try {
    return { answer: await api.decode(text, signal) };
  } catch (thrown) {
    return { error: toApiError(thrown).message };
  }
}

/** A text to decode. */
interface GivenText {
  readonly text: string;
  /** What it is called; it is not edited in the page then. @default it is edited */
  readonly name?: string;
  /** Why another one was not taken over. @default none was refused */
  readonly refused?: string;
}

/** Bytes that are sent at most, as the server has it. */
export const MOST_DECODED_BYTES = 2 * 1_024 * 1_024;

/** Characters that are edited in the page; browsers stutter with more, so longer ones are shown by their beginning. */
const MOST_EDITED = 300_000;

/** Takes a text over: one that is too long to be edited goes by its name. */
export function toGiven(text: string, name: string): GivenText {
  return text.length <= MOST_EDITED ? { text } : { text, name };
}

/** Says that something is too long to be sent; nothing when it is not. */
export function tooLong(what: string, bytes: number): string | undefined {
  return bytes <= MOST_DECODED_BYTES
    ? undefined
    : `${what} takes ${showBytes(bytes)}, and ${showBytes(MOST_DECODED_BYTES)} is the most. "waybill decode" reads longer ones.`;
}

/** Bytes that a text takes on its way to the server: as JSON, in which quotes and line ends take two. */
export function sentBytes(text: string): number {
  if (text.length > MOST_DECODED_BYTES) return text.length;
  return new TextEncoder().encode(JSON.stringify({ text })).length;
}
