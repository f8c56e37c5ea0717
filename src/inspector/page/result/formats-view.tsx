import { useMemo } from "preact/hooks";
import type { DifferenceView, EnvelopeView, FormatView } from "../../protocol.ts";
import { FORMAT_WORDS } from "../decode/decode-words.ts";
import { Badge } from "../parts/badge.tsx";
import { prettyJson } from "../parts/json-text.ts";
import { MoreList } from "../parts/more-list.tsx";
import { Pending } from "../parts/notice.tsx";
import { counted, showBytes } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import { useAsked, useSession } from "../session.ts";
import { Sheet } from "./sheet.tsx";

/** How a result reads in each format, what each would lose, and what it would make up. */
export function FormatsView({
  envelope,
  operation,
}: {
  readonly envelope: EnvelopeView;
  /** The id of the operation that answered. @default none */
  readonly operation?: string | undefined;
}) {
  const { api } = useSession();
  const asked = useAsked((signal) => api.formats(envelope, operation, signal), [api, envelope, operation]);
  return (
    <div class="formats">
      <Pending {...asked} what="how it reads in each format" />
      {asked.value?.formats.map((view) => (
        <Format key={view.format} view={view} />
      ))}
    </div>
  );
}

function Format({ view: { format, encoded, refused, bytes, lost, madeUp } }: { readonly view: FormatView }) {
  const text = useMemo(() => prettyJson(encoded), [encoded]);
  const name = FORMAT_WORDS[format];
  const count = lost.length;
  return (
    <section class="card stack tight" aria-label={name}>
      <div class="row">
        <h3>{name}</h3>
        {bytes !== undefined && <span class="soft small">{showBytes(bytes)}</span>}
        {refused === undefined && (
          <Badge tone={count === 0 ? "ok" : "warn"}>
            {count === 0 ? "loses nothing" : `loses ${counted(count, "thing")}`}
          </Badge>
        )}
      </div>
      {refused !== undefined && <p class="notice warn small">{visibleText(refused, 500)}</p>}
      <Differences title="Lost" items={lost} />
      <Differences title="Made up" items={madeUp} />
      {encoded !== undefined && (
        <Sheet label={`Result as ${name}`} text={text} file={`result.${format}.json`} />
      )}
    </section>
  );
}

function Differences({
  title,
  items,
}: {
  readonly title: string;
  readonly items: readonly DifferenceView[];
}) {
  return items.length === 0 ? null : (
    <>
      <h4>{title}</h4>
      <MoreList
        items={items}
        label={title}
        draw={({ pointer, text }) => (
          <div class="break small">
            <code>{visibleText(pointer, 120)}</code> <span class="soft">{visibleText(text, 80)}</span>
          </div>
        )}
      />
    </>
  );
}
