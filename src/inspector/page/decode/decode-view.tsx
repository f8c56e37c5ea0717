import { useState } from "preact/hooks";
import type { DecodedView } from "../../protocol.ts";
import { Empty } from "../parts/notice.tsx";
import { DecodeInput } from "./decode-input.tsx";
import { FORMAT_WORDS, outcomeWords } from "./decode-words.ts";
import { DecodedResult } from "./decoded-result.tsx";
import { useDecoded } from "./use-decoded.ts";
import "./decode.css";

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
