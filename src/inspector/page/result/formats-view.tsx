import { useMemo } from "preact/hooks";
import type { EnvelopeView, FormatName, FormatView } from "../../protocol.ts";
import { Badge } from "../parts/badge.tsx";
import { prettyJson, shortJson } from "../parts/json-text.ts";
import { MoreList } from "../parts/more-list.tsx";
import { Pending } from "../parts/notice.tsx";
import { counted, showBytes } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import { useAsked, useSession } from "../session.ts";
import { lostValue } from "./result-facts.ts";
import { Sheet } from "./sheet.tsx";

const NAMES: Readonly<Record<FormatName, string>> = {
  "tool-envelope": "Tool envelope",
  "tiered-envelope": "Tiered envelope",
  "status-envelope": "Status envelope",
  mcp: "Plain MCP",
  "response-envelope": "Response envelope",
};

/** How a result reads in each format, and what each would lose. */
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
        <Format key={view.format} view={view} envelope={envelope} />
      ))}
    </div>
  );
}

function Format({ view, envelope }: { readonly view: FormatView; readonly envelope: EnvelopeView }) {
  const { format, encoded, refused, bytes, losses } = view;
  const text = useMemo(() => prettyJson(encoded), [encoded]);
  const name = NAMES[format];
  const differing = losses.map((pointer) => {
    const had = lostValue(envelope, pointer);
    // A format also differs where it wants something that the result never had.
    return { pointer, had, isMadeUp: had === undefined && !pointer.startsWith("/extra") };
  });
  const lost = differing.filter(({ isMadeUp }) => !isMadeUp).length;
  return (
    <section class="card stack tight" aria-label={name}>
      <div class="row">
        <h3>{name}</h3>
        {bytes !== undefined && <span class="soft small">{showBytes(bytes)}</span>}
        {refused === undefined && (
          <Badge tone={lost === 0 ? "ok" : "warn"}>
            {lost === 0 ? "loses nothing" : `loses ${counted(lost, "thing")}`}
          </Badge>
        )}
      </div>
      {refused !== undefined && <p class="notice warn small">{visibleText(refused, 500)}</p>}
      {losses.length > 0 && (
        <MoreList
          items={differing}
          label="What differs"
          draw={({ pointer, had, isMadeUp }) => (
            <div class="break small">
              <code>{visibleText(pointer, 120)}</code>{" "}
              <span class="soft">{isMadeUp ? "made up" : had && shortJson(had.value, 80)}</span>
            </div>
          )}
        />
      )}
      {encoded !== undefined && (
        <Sheet label={`Result as ${name}`} text={text} file={`result.${format}.json`} />
      )}
    </section>
  );
}
