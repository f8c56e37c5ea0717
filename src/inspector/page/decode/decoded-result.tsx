import type { DecodedView } from "../../protocol.ts";
import { Badge } from "../parts/badge.tsx";
import { Facts } from "../parts/facts.tsx";
import { JsonTree } from "../parts/json-tree.tsx";
import { MoreList } from "../parts/more-list.tsx";
import { PlainText } from "../parts/plain-text.tsx";
import { obtainedWords } from "../result/result-facts.ts";
import { ResultPanel } from "../result/result-panel.tsx";
import { FORMAT_WORDS, outcomeWords, wrappingWords } from "./decode-words.ts";

/** What one result turned out to be: its format, what is odd about it, and the data. */
export function DecodedResult({ result }: { readonly result: DecodedView }) {
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
          {odd.length === 0 && <Badge>✓ nothing odd</Badge>}
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
